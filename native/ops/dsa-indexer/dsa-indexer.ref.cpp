#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/dsa-indexer/dsa-indexer.h"

namespace trilithon::dsa_indexer {
namespace {

template <typename T>
T key_value(const TensorView& k, const PageMap& pages, const Chunk& chunk, int64_t position, int64_t column) {
  const KeyPlace place = key_place(pages, chunk, position);
  return pages.block_table == nullptr ? k.at<T>(place.row, column) : k.at<T>(place.page, place.row, column);
}

template <typename T>
T product_of(const TensorView& q, int64_t query, int64_t head, const TensorView& k, const PageMap& pages, const Chunk& chunk,
             int64_t position) {
  T product = 0;
  for (int64_t i = 0; i < q.shape[2]; ++i) product += q.at<T>(query, head, i) * key_value<T>(k, pages, chunk, position, i);
  return product;
}

// max(0, x) that lets NaN through.
template <typename T>
T relu(T x) {
  return x <= 0 ? T(0) : x;
}

template <typename T>
T score_of(const TensorView& q, const TensorView& weights, int64_t query, const TensorView& k, const PageMap& pages, const Chunk& chunk,
           int64_t position, T scale) {
  T score = 0;
  for (int64_t head = 0; head < q.shape[1]; ++head) {
    score += scale * weights.at<T>(query, head) * relu(product_of<T>(q, query, head, k, pages, chunk, position));
  }
  return score;
}

}  // namespace

template <typename T>
void select_reference(const TensorView& q, const TensorView& k, const TensorView& weights, const PageMap& pages, const Chunk* chunks,
                      int64_t chunk_count, double scale, const TensorView& indices, const TensorView& counts) {
  const int64_t top_k = indices.shape[1];
  for (int64_t c = 0; c < chunk_count; ++c) {
    for (int64_t t = 0; t < chunks[c].query_count; ++t) {
      const int64_t query = chunks[c].query_begin + t, seen = chunks[c].position + t + 1, count = std::min(top_k, seen);
      std::vector<T> scores;
      std::vector<int64_t> order;
      for (int64_t j = 0; j < seen; ++j) {
        scores.push_back(score_of<T>(q, weights, query, k, pages, chunks[c], j, T(scale)));
        order.push_back(j);
      }
      // NaN is below every number.
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        const T x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
        return std::isnan(y) ? !std::isnan(x) : x > y;
      });
      std::sort(order.begin(), order.begin() + count);
      for (int64_t i = 0; i < top_k; ++i) {
        indices.at<int32_t>(query, i) = i < count ? static_cast<int32_t>(order[static_cast<size_t>(i)]) : -1;
      }
      counts.at<int32_t>(query) = static_cast<int32_t>(count);
    }
  }
}

template <typename T>
void scores_reference(const Scores& a, const Chunk* chunks, int64_t chunk_count) {
  for (int64_t c = 0; c < chunk_count; ++c) {
    for (int64_t t = 0; t < chunks[c].query_count; ++t) {
      const int64_t query = chunks[c].query_begin + t;
      for (int64_t i = 0; i < a.scores.shape[1]; ++i) {
        a.scores.at<T>(query, i) = i < a.chosen.counts.at<int32_t>(query)
                                       ? score_of<T>(a.q, a.weights, query, a.k, page_map(a.sequences), chunks[c],
                                                     a.chosen.indices.at<int32_t>(query, i), T(a.scale))
                                       : T(0);
      }
    }
  }
}

template <typename T>
void scores_backward_reference(const ScoresBackward& a, const Chunk* chunks, int64_t chunk_count) {
  const int64_t heads = a.q.shape[1], width = a.q.shape[2];
  for (int64_t key = 0; key < a.k.shape[0]; ++key) {
    for (int64_t i = 0; i < width; ++i) a.d_k.at<T>(key, i) = 0;
  }
  for (int64_t c = 0; c < chunk_count; ++c) {
    for (int64_t t = 0; t < chunks[c].query_count; ++t) {
      const int64_t query = chunks[c].query_begin + t;
      for (int64_t head = 0; head < heads; ++head) {
        a.d_weights.at<T>(query, head) = 0;
        for (int64_t i = 0; i < width; ++i) a.d_q.at<T>(query, head, i) = 0;
        for (int64_t slot = 0; slot < a.chosen.counts.at<int32_t>(query); ++slot) {
          const int64_t position = a.chosen.indices.at<int32_t>(query, slot), key = chunks[c].key_begin + position;
          const T product = product_of<T>(a.q, query, head, a.k, page_map(a.sequences), chunks[c], position);
          if (product <= 0) continue;
          const T slope = T(a.scale) * a.d_scores.at<T>(query, slot);
          a.d_weights.at<T>(query, head) += slope * product;
          const T d_product = slope * a.weights.at<T>(query, head);
          for (int64_t i = 0; i < width; ++i) {
            a.d_q.at<T>(query, head, i) += d_product * a.k.at<T>(key, i);
            a.d_k.at<T>(key, i) += d_product * a.q.at<T>(query, head, i);
          }
        }
      }
    }
  }
}

template void select_reference<float>(const TensorView&, const TensorView&, const TensorView&, const PageMap&, const Chunk*, int64_t,
                                      double, const TensorView&, const TensorView&);
template void select_reference<double>(const TensorView&, const TensorView&, const TensorView&, const PageMap&, const Chunk*, int64_t,
                                       double, const TensorView&, const TensorView&);
template void scores_reference<float>(const Scores&, const Chunk*, int64_t);
template void scores_reference<double>(const Scores&, const Chunk*, int64_t);
template void scores_backward_reference<float>(const ScoresBackward&, const Chunk*, int64_t);
template void scores_backward_reference<double>(const ScoresBackward&, const Chunk*, int64_t);

}  // namespace trilithon::dsa_indexer
