// Scores and softmax of few query rows over one block of keys: the same numbers in the same order as isa/attend.h, with lanes along
// keys instead of rows. Where two or four heads share a key head, lanes along rows would leave most of them empty.
//
// A score stays one fma chain over the width; sixteen keys are turned in registers, so that sixteen chains run beside each other. The
// sum of a row's weights keeps its four chains, key mod 4. The maximum has no order: only the sign of a zero and which NaN comes out
// could differ, and neither reaches a result (e^0 = 1 for both zeros; a row that sees a NaN is NaN).
#pragma once

#include "isa/gemm-pack.h"
#include "isa/math.h"

KERNELS_BEGIN

// Up to so many rows lanes run along keys; with more the lanes along rows are full enough. The limit does not touch a bit.
constexpr int64_t key_lane_rows = 4;

// Four neighbours in a row, anywhere in memory.
typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));

// to[r * to_stride + 16 * g + lane] = queries[r] · key `lane` of group g. Groups are sixteen keys, `stride` apart; queries are rows of
// `width`.
template <int rows, int groups>
TRILITHON_INLINE void score_groups(const float* const (&keys)[groups], int64_t stride, int64_t width, const float* queries, float* to,
                                   int64_t to_stride) {
  F sums[rows][groups];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int g = 0; g < groups; ++g) sums[r][g] = zero();
  }
  int64_t i = 0;
  for (; i + 16 <= width; i += 16) {
#pragma GCC unroll 2
    for (int g = 0; g < groups; ++g) {
      F v[16];
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) v[j] = load(keys[g] + j * stride + i);
      transpose(v);
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) sums[r][g] = fma(v[j], set(queries[r * width + i + j]), sums[r][g]);
      }
    }
  }
  if (i < width) {
#pragma GCC unroll 2
    for (int g = 0; g < groups; ++g) {
      F v[16];
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) v[j] = load_n(keys[g] + j * stride + i, width - i);
      transpose(v);
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) {
        if (j >= width - i) break;
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) sums[r][g] = fma(v[j], set(queries[r * width + i + j]), sums[r][g]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int g = 0; g < groups; ++g) store(to + r * to_stride + 16 * g, sums[r][g]);
  }
}

// The same for a number of rows that is known at run time only, 1 to key_lane_rows.
template <int groups, int rows = key_lane_rows>
TRILITHON_INLINE void score_few(int64_t count, const float* const (&keys)[groups], int64_t stride, int64_t width, const float* queries,
                                float* to, int64_t to_stride) {
  if constexpr (rows > 1) {
    if (count < rows) return score_few<groups, rows - 1>(count, keys, stride, width, queries, to, to_stride);
  }
  score_groups<rows, groups>(keys, stride, width, queries, to, to_stride);
}

// The softmax of one block for few rows: turns scores of `count` keys from `position` on into weights and updates maximum and sum.
// Row r sees the keys before limits[r]. Rows lie `stride` apart and have room for count rounded up to 16.
TRILITHON_INLINE void soften_few(float* scores, int64_t stride, int64_t rows, int64_t count, const int32_t* limits, int64_t position,
                                 bool fresh, float* top_of, float* total_of, float* factors) {
  const F lowest = set(-__builtin_inff());
  float tops[16], sums[16];
  store(tops, lowest);
  store(sums, zero());
  const auto seen_by = [&](int64_t r) { return at_most(limits[r] - position, count); };
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t seen = seen_by(r);
    F highest = lowest;
    for (int64_t i = 0; i < seen; i += 16) {
      const F score = load(scores + r * stride + i);
      highest = max(highest, seen - i >= 16 ? score : select(first(seen - i), score, lowest));
    }
    tops[r] = top(highest);
  }
  F highest = load(tops);
  const F before = load(top_of);
  if (!fresh) highest = max(before, highest);
  store(tops, highest);
  store(top_of, highest);
  for (int64_t r = 0; r < rows; ++r) {
    float* row = scores + r * stride;
    const int64_t seen = seen_by(r);
    Four chains = {0, 0, 0, 0};
    for (int64_t i = 0; i < count; i += 16) {
      F weight = exp(sub(load(row + i), set(tops[r])));
      if (seen - i < 16) weight = select(first(seen - i), weight, zero());
      store(row + i, weight);
      // Keys that are not there have the weight 0, which changes no sum.
      const Four* four = reinterpret_cast<const Four*>(row + i);
      chains = chains + four[0];
      chains = chains + four[1];
      chains = chains + four[2];
      chains = chains + four[3];
    }
    sums[r] = (chains[0] + chains[1]) + (chains[2] + chains[3]);
  }
  const F added = load(sums);
  if (fresh) {
    store(total_of, added);
  } else {
    const F factor = exp(sub(before, highest));
    store(factors, factor);
    store(total_of, fma(load(total_of), factor, added));
  }
}

KERNELS_END
