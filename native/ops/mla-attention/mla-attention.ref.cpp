#include <cmath>
#include <vector>

#include "ops/mla-attention/mla-attention.h"

namespace trilithon::mla_attention {
namespace {

// Positions that a query attends to.
std::vector<int64_t> seen_by(const ChosenKeys& chosen, int64_t query, int64_t position) {
  std::vector<int64_t> list;
  if (!chosen.present()) {
    for (int64_t j = 0; j <= position; ++j) list.push_back(j);
  } else {
    for (int64_t i = 0; i < chosen.counts.at<int32_t>(query); ++i) list.push_back(chosen.indices.at<int32_t>(query, i));
  }
  return list;
}

template <typename T>
T key_value(const TensorView& rows, const PageMap& pages, const Chunk& chunk, int64_t position, int64_t column) {
  const KeyPlace place = key_place(pages, chunk, position);
  return pages.block_table == nullptr ? rows.at<T>(place.row, column) : rows.at<T>(place.page, place.row, column);
}

}  // namespace

template <typename T>
void forward_reference(const TensorView& q, const TensorView& q_rope, const TensorView& latent, const TensorView& rope,
                       const PageMap& pages, const ChosenKeys& chosen, const Chunk* chunks, int64_t chunk_count, double scale,
                       const TensorView& out, const TensorView& lse) {
  for (int64_t c = 0; c < chunk_count; ++c) {
    for (int64_t t = 0; t < chunks[c].query_count; ++t) {
      const int64_t query = chunks[c].query_begin + t;
      const std::vector<int64_t> seen = seen_by(chosen, query, chunks[c].position + t);
      for (int64_t head = 0; head < q.shape[1]; ++head) {
        std::vector<T> scores;
        for (const int64_t j : seen) {
          T product = 0;
          for (int64_t i = 0; i < q.shape[2]; ++i) product += q.at<T>(query, head, i) * key_value<T>(latent, pages, chunks[c], j, i);
          for (int64_t i = 0; i < q_rope.shape[2]; ++i)
            product += q_rope.at<T>(query, head, i) * key_value<T>(rope, pages, chunks[c], j, i);
          scores.push_back(T(scale) * product);
        }
        T top = scores[0], total = 0;
        for (const T score : scores) top = std::isnan(score) || score > top ? score : top;
        for (const T score : scores) total += std::exp(score - top);
        for (int64_t i = 0; i < out.shape[2]; ++i) {
          T sum = 0;
          for (size_t s = 0; s < seen.size(); ++s) sum += std::exp(scores[s] - top) * key_value<T>(latent, pages, chunks[c], seen[s], i);
          out.at<T>(query, head, i) = sum / total;
        }
        if (lse.present()) lse.at<T>(query, head) = top + std::log(total);
      }
    }
  }
}

template <typename T>
void backward_reference(const Backward& a, const Chunk* chunks, int64_t chunk_count) {
  const int64_t heads = a.q.shape[1], latent_width = a.q.shape[2], rope_width = a.q_rope.shape[2];
  for (int64_t key = 0; key < a.latent.shape[0]; ++key) {
    for (int64_t i = 0; i < latent_width; ++i) a.d_latent.at<T>(key, i) = 0;
    for (int64_t i = 0; i < rope_width; ++i) a.d_rope.at<T>(key, i) = 0;
  }
  for (int64_t c = 0; c < chunk_count; ++c) {
    for (int64_t t = 0; t < chunks[c].query_count; ++t) {
      const int64_t query = chunks[c].query_begin + t;
      const std::vector<int64_t> seen = seen_by(a.chosen, query, chunks[c].position + t);
      for (int64_t head = 0; head < heads; ++head) {
        T delta = 0;
        for (int64_t i = 0; i < latent_width; ++i) delta += a.out.at<T>(query, head, i) * a.d_out.at<T>(query, head, i);
        for (int64_t i = 0; i < latent_width; ++i) a.d_q.at<T>(query, head, i) = 0;
        for (int64_t i = 0; i < rope_width; ++i) a.d_q_rope.at<T>(query, head, i) = 0;
        for (const int64_t j : seen) {
          const int64_t key = chunks[c].key_begin + j;
          T product = 0, d_weight = 0;
          for (int64_t i = 0; i < latent_width; ++i) {
            product += a.q.at<T>(query, head, i) * a.latent.at<T>(key, i);
            d_weight += a.d_out.at<T>(query, head, i) * a.latent.at<T>(key, i);
          }
          for (int64_t i = 0; i < rope_width; ++i) product += a.q_rope.at<T>(query, head, i) * a.rope.at<T>(key, i);
          const T weight = std::exp(T(a.scale) * product - a.lse.at<T>(query, head));
          const T d_score = T(a.scale) * weight * (d_weight - delta);
          for (int64_t i = 0; i < latent_width; ++i) {
            a.d_q.at<T>(query, head, i) += d_score * a.latent.at<T>(key, i);
            a.d_latent.at<T>(key, i) += d_score * a.q.at<T>(query, head, i) + weight * a.d_out.at<T>(query, head, i);
          }
          for (int64_t i = 0; i < rope_width; ++i) {
            a.d_q_rope.at<T>(query, head, i) += d_score * a.rope.at<T>(key, i);
            a.d_rope.at<T>(key, i) += d_score * a.q_rope.at<T>(query, head, i);
          }
        }
      }
    }
  }
}

template void forward_reference<float>(const TensorView&, const TensorView&, const TensorView&, const TensorView&, const PageMap&,
                                       const ChosenKeys&, const Chunk*, int64_t, double, const TensorView&, const TensorView&);
template void forward_reference<double>(const TensorView&, const TensorView&, const TensorView&, const TensorView&, const PageMap&,
                                        const ChosenKeys&, const Chunk*, int64_t, double, const TensorView&, const TensorView&);
template void backward_reference<float>(const Backward&, const Chunk*, int64_t);
template void backward_reference<double>(const Backward&, const Chunk*, int64_t);

}  // namespace trilithon::mla_attention
