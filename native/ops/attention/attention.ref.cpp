#include <cmath>
#include <vector>

#include "ops/attention/attention.h"

namespace trilithon::attention {
namespace {

// Keys and values of one document or sequence, wherever they lie.
template <typename T>
struct Keys {
  const TensorView& rows;
  const PageMap& pages;
  const Chunk& chunk;

  T at(int64_t position, int64_t head, int64_t column) const {
    const KeyPlace place = key_place(pages, chunk, position);
    return pages.block_table == nullptr ? rows.at<T>(place.row, head, column) : rows.at<T>(place.page, place.row, head, column);
  }
};

// Scores of one query row with the keys that it sees.
template <typename T>
std::vector<T> scores_of(const TensorView& q, int64_t query, int64_t head, int64_t kv_head, const Keys<T>& keys, int64_t seen, T scale) {
  std::vector<T> scores(static_cast<size_t>(seen));
  for (int64_t j = 0; j < seen; ++j) {
    T product = 0;
    for (int64_t i = 0; i < q.shape[2]; ++i) product += q.at<T>(query, head, i) * keys.at(j, kv_head, i);
    scores[static_cast<size_t>(j)] = scale * product;
  }
  return scores;
}

}  // namespace

template <typename T>
void forward_reference(const TensorView& q, const TensorView& k, const TensorView& v, const PageMap& pages, const Chunk* chunks,
                       int64_t chunk_count, double scale, const TensorView& out, const TensorView& lse) {
  const int64_t heads = q.shape[1], group = heads / k.shape[k.rank - 2];
  for (int64_t c = 0; c < chunk_count; ++c) {
    const Keys<T> keys{k, pages, chunks[c]}, values{v, pages, chunks[c]};
    for (int64_t t = 0; t < chunks[c].query_count; ++t) {
      const int64_t query = chunks[c].query_begin + t, seen = chunks[c].position + t + 1;
      for (int64_t head = 0; head < heads; ++head) {
        const std::vector<T> scores = scores_of<T>(q, query, head, head / group, keys, seen, T(scale));
        T top = scores[0], total = 0;
        for (const T score : scores) top = std::isnan(score) || score > top ? score : top;
        for (const T score : scores) total += std::exp(score - top);
        for (int64_t i = 0; i < out.shape[2]; ++i) {
          T sum = 0;
          for (int64_t j = 0; j < seen; ++j) sum += std::exp(scores[static_cast<size_t>(j)] - top) * values.at(j, head / group, i);
          out.at<T>(query, head, i) = sum / total;
        }
        if (lse.present()) lse.at<T>(query, head) = top + std::log(total);
      }
    }
  }
}

template <typename T>
void backward_reference(const Backward& a, const Chunk* chunks, int64_t chunk_count) {
  const int64_t heads = a.q.shape[1], width = a.q.shape[2], kv_heads = a.k.shape[1], value_width = a.v.shape[2], group = heads / kv_heads;
  for (int64_t key = 0; key < a.k.shape[0]; ++key) {
    for (int64_t head = 0; head < kv_heads; ++head) {
      for (int64_t i = 0; i < width; ++i) a.d_k.at<T>(key, head, i) = 0;
      for (int64_t i = 0; i < value_width; ++i) a.d_v.at<T>(key, head, i) = 0;
    }
  }
  const PageMap packed{nullptr, 0, 1};
  for (int64_t c = 0; c < chunk_count; ++c) {
    const Keys<T> keys{a.k, packed, chunks[c]};
    for (int64_t t = 0; t < chunks[c].query_count; ++t) {
      const int64_t query = chunks[c].query_begin + t, seen = chunks[c].position + t + 1;
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t kv_head = head / group;
        const std::vector<T> scores = scores_of<T>(a.q, query, head, kv_head, keys, seen, T(a.scale));
        T delta = 0;
        for (int64_t i = 0; i < value_width; ++i) delta += a.out.at<T>(query, head, i) * a.d_out.at<T>(query, head, i);
        for (int64_t i = 0; i < width; ++i) a.d_q.at<T>(query, head, i) = 0;
        for (int64_t j = 0; j < seen; ++j) {
          const int64_t key = chunks[c].key_begin + j;
          const T weight = std::exp(scores[static_cast<size_t>(j)] - a.lse.at<T>(query, head));
          T d_weight = 0;
          for (int64_t i = 0; i < value_width; ++i) d_weight += a.d_out.at<T>(query, head, i) * a.v.at<T>(key, kv_head, i);
          const T d_score = T(a.scale) * weight * (d_weight - delta);
          for (int64_t i = 0; i < width; ++i) {
            a.d_q.at<T>(query, head, i) += d_score * a.k.at<T>(key, kv_head, i);
            a.d_k.at<T>(key, kv_head, i) += d_score * a.q.at<T>(query, head, i);
          }
          for (int64_t i = 0; i < value_width; ++i) a.d_v.at<T>(key, kv_head, i) += weight * a.d_out.at<T>(query, head, i);
        }
      }
    }
  }
}

template void forward_reference<float>(const TensorView&, const TensorView&, const TensorView&, const PageMap&, const Chunk*, int64_t,
                                       double, const TensorView&, const TensorView&);
template void forward_reference<double>(const TensorView&, const TensorView&, const TensorView&, const PageMap&, const Chunk*, int64_t,
                                        double, const TensorView&, const TensorView&);
template void backward_reference<float>(const Backward&, const Chunk*, int64_t);
template void backward_reference<double>(const Backward&, const Chunk*, int64_t);

}  // namespace trilithon::attention
