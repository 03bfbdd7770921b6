// The choice of a token by a row's rules, in plain code on numbers that every kernel table computes alike. Included by
// sampling.cpp only.
#pragma once

#include <algorithm>

#include "ops/sampling/sampling.h"

namespace trilithon::sampling {

// Descending logits; of equal ones the lower token first.
inline bool comes_first(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.token < b.token; }

// Draws from tokens 0 to count - 1 in ascending order, of which `weight(i)` is a share (0: not kept).
template <typename Weight>
int64_t draw(int64_t count, double uniform, Weight weight) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += weight(i);
  const double threshold = uniform * total;
  double sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (weight(i) == 0) continue;
    sum += weight(i);
    last = i;
    if (sum > threshold) return i;
  }
  // Only where uniform * total rounds up to total.
  return last;
}

inline int64_t choose_greedily(const Row& row) {
  int64_t chunk = 0;
  while (row.tops[chunk] != row.sums.top) ++chunk;
  int64_t token = chunk * lm_head::vocabulary_chunk;
  while (row.logits[token] * row.scale != row.sums.top) ++token;
  return token;
}

// Weight of all tokens that min_p keeps.
inline double kept_weight(const Row& row, const RowRules& rules, const ChoiceScratch& scratch) {
  double total = 0;
  for (int64_t i = 0; i < row.vocabulary; ++i) {
    if (scratch.weights[i] >= rules.min_p) total += scratch.weights[i];
  }
  return total;
}

// Gathers the tokens that can be among the kept ones, and returns how many. What is left out is certain not to be kept.
inline int64_t gather(const Row& row, const RowRules& rules, const ChoiceScratch& scratch) {
  // At least top_k chunks have a z as large as the top_k-th largest of their tops, so no smaller z is among the top_k.
  float lowest_z = -__builtin_inff();
  if (rules.top_k > 0 && rules.top_k <= row.chunks) {
    std::copy(row.tops, row.tops + row.chunks, scratch.tops);
    std::nth_element(scratch.tops, scratch.tops + rules.top_k - 1, scratch.tops + row.chunks, [](float a, float b) { return a > b; });
    lowest_z = scratch.tops[rules.top_k - 1];
  }
  // Weights below this add up to less than half of what top_p leaves out.
  double lowest_weight = rules.min_p;
  if (rules.top_k == 0 && rules.top_p < 1) {
    const double share = kept_weight(row, rules, scratch) / static_cast<double>(row.vocabulary);
    lowest_weight = std::max(lowest_weight, 0.5 * (1 - rules.top_p) * share);
  }
  int64_t count = 0;
  for (int64_t i = 0; i < row.vocabulary; ++i) {
    if (row.logits[i] * row.scale >= lowest_z && scratch.weights[i] >= lowest_weight)
      scratch.candidates[count++] = {row.logits[i], static_cast<int32_t>(i)};
  }
  return count;
}

// Sorts as many candidates as are kept to the front and returns how many those are.
inline int64_t keep(const Row& row, const RowRules& rules, const ChoiceScratch& scratch, int64_t count) {
  Candidate* const begin = scratch.candidates;
  const auto weight = [&](int64_t i) { return static_cast<double>(scratch.weights[begin[i].token]); };
  if (rules.top_k > 0) {
    const int64_t limit = std::min(count, rules.top_k);
    std::partial_sort(begin, begin + limit, begin + count, comes_first);
    count = limit;
  }
  if (rules.top_p == 1) return count;
  double total = 0;
  if (rules.top_k > 0) {
    for (int64_t i = 0; i < count; ++i) total += weight(i);
  } else {
    total = kept_weight(row, rules, scratch);
  }
  // Sorted only as far as needed: the front grows in steps that double.
  double sum = 0;
  int64_t sorted = rules.top_k > 0 ? count : 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i == sorted) {
      const int64_t end = std::min(count, std::max<int64_t>(64, 2 * sorted));
      std::partial_sort(begin + sorted, begin + end, begin + count, comes_first);
      sorted = end;
    }
    sum += weight(i);
    if (sum >= rules.top_p * total) return i + 1;
  }
  return count;
}

inline int64_t choose(const Row& row, const RowRules& rules, const Kernels& kernels, const ChoiceScratch& scratch) {
  if (rules.greedy()) return choose_greedily(row);
  kernels.weights(row.logits, row.vocabulary, row.scale, row.sums.top, scratch.weights);
  const float* const weights = scratch.weights;
  if (rules.top_k == 0 && rules.top_p == 1) {
    if (rules.min_p == 0) return draw(row.vocabulary, rules.uniform, [weights](int64_t i) { return static_cast<double>(weights[i]); });
    return draw(row.vocabulary, rules.uniform,
                [&](int64_t i) { return weights[i] >= rules.min_p ? static_cast<double>(weights[i]) : 0.0; });
  }
  const int64_t count = keep(row, rules, scratch, gather(row, rules, scratch));
  for (int64_t i = 0; i < count; ++i) scratch.kept[i] = scratch.candidates[i].token;
  std::sort(scratch.kept, scratch.kept + count);
  return scratch.kept[draw(count, rules.uniform, [&](int64_t i) { return static_cast<double>(weights[scratch.kept[i]]); })];
}

}  // namespace trilithon::sampling
