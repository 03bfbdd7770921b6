#include <cmath>
#include <vector>

#include "ops/indexer-kl/indexer-kl.h"

namespace trilithon::indexer_kl {
namespace {

// Index scores and target (sum over heads of attention, not normalised) of the keys that one query sees.
template <typename T>
struct Query {
  std::vector<int64_t> keys;  // rows
  std::vector<T> scores, target;
  T target_sum = 0;

  Query(const Inputs& in, const Chunk& chunk, int64_t t) {
    const int64_t query = chunk.query_begin + t, position = chunk.position + t;
    const int64_t count = in.chosen.present() ? in.chosen.counts.at<int32_t>(query) : position + 1;
    for (int64_t slot = 0; slot < count; ++slot) {
      const int64_t key = chunk.key_begin + (in.chosen.present() ? in.chosen.indices.at<int32_t>(query, slot) : slot);
      keys.push_back(key);
      T score = 0, weight = 0;
      for (int64_t j = 0; j < in.index_q.shape[1]; ++j) {
        const T product = product_of(in, query, j, key);
        if (!(product <= 0)) score += T(in.index_scale) * in.index_weights.at<T>(query, j) * product;
      }
      for (int64_t head = 0; head < in.q.shape[1]; ++head) {
        T product = 0;
        for (int64_t i = 0; i < in.q.shape[2]; ++i) product += in.q.at<T>(query, head, i) * in.latent.at<T>(key, i);
        for (int64_t i = 0; i < in.q_rope.shape[2]; ++i) product += in.q_rope.at<T>(query, head, i) * in.rope.at<T>(key, i);
        weight += std::exp(T(in.scale) * product - in.lse.at<T>(query, head));
      }
      scores.push_back(score);
      target.push_back(weight);
      target_sum += weight;
    }
  }

  static T product_of(const Inputs& in, int64_t query, int64_t head, int64_t key) {
    T product = 0;
    for (int64_t i = 0; i < in.index_q.shape[2]; ++i) product += in.index_q.at<T>(query, head, i) * in.index_k.at<T>(key, i);
    return product;
  }
};

}  // namespace

template <typename T>
void forward_reference(const Forward& a, const Chunk* chunks, int64_t chunk_count) {
  for (int64_t c = 0; c < chunk_count; ++c) {
    for (int64_t t = 0; t < chunks[c].query_count; ++t) {
      const Query<T> q(a.in, chunks[c], t);
      T top = q.scores[0], total = 0, kl = 0;
      for (const T score : q.scores) top = std::isnan(score) || score > top ? score : top;
      for (const T score : q.scores) total += std::exp(score - top);
      const T index_lse = top + std::log(total);
      for (size_t i = 0; i < q.keys.size(); ++i) {
        const T share = q.target[i] / q.target_sum;
        if (share != 0) kl += share * (std::log(share) - (q.scores[i] - index_lse));
      }
      a.kl.at<T>(chunks[c].query_begin + t) = q.target_sum == 0 ? 0 : kl;
      a.index_lse.at<T>(chunks[c].query_begin + t) = index_lse;
      a.target_sum.at<T>(chunks[c].query_begin + t) = q.target_sum;
    }
  }
}

template <typename T>
void backward_reference(const Backward& a, const Chunk* chunks, int64_t chunk_count) {
  const int64_t heads = a.in.index_q.shape[1], width = a.in.index_q.shape[2];
  for (int64_t key = 0; key < a.in.index_k.shape[0]; ++key) {
    for (int64_t i = 0; i < width; ++i) a.d_index_k.at<T>(key, i) = 0;
  }
  for (int64_t c = 0; c < chunk_count; ++c) {
    for (int64_t t = 0; t < chunks[c].query_count; ++t) {
      const int64_t query = chunks[c].query_begin + t;
      const Query<T> q(a.in, chunks[c], t);
      for (int64_t j = 0; j < heads; ++j) {
        a.d_index_weights.at<T>(query, j) = 0;
        for (int64_t i = 0; i < width; ++i) a.d_index_q.at<T>(query, j, i) = 0;
      }
      if (a.target_sum.at<T>(query) == 0) continue;
      for (size_t slot = 0; slot < q.keys.size(); ++slot) {
        const T d_score =
            a.d_kl.at<T>(query) * (std::exp(q.scores[slot] - a.index_lse.at<T>(query)) - q.target[slot] / a.target_sum.at<T>(query));
        for (int64_t j = 0; j < heads; ++j) {
          const T product = Query<T>::product_of(a.in, query, j, q.keys[slot]);
          if (product <= 0) continue;
          a.d_index_weights.at<T>(query, j) += T(a.in.index_scale) * d_score * product;
          const T d_product = T(a.in.index_scale) * d_score * a.in.index_weights.at<T>(query, j);
          for (int64_t i = 0; i < width; ++i) {
            a.d_index_q.at<T>(query, j, i) += d_product * a.in.index_k.at<T>(q.keys[slot], i);
            a.d_index_k.at<T>(q.keys[slot], i) += d_product * a.in.index_q.at<T>(query, j, i);
          }
        }
      }
    }
  }
}

template void forward_reference<float>(const Forward&, const Chunk*, int64_t);
template void forward_reference<double>(const Forward&, const Chunk*, int64_t);
template void backward_reference<float>(const Backward&, const Chunk*, int64_t);
template void backward_reference<double>(const Backward&, const Chunk*, int64_t);

}  // namespace trilithon::indexer_kl
