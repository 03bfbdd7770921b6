// Logits of a chunk of the vocabulary and the log-softmax of a row, in the one order that lm-head and sampling share: what the
// engine reports for a token equals to the bit what the trainer computes for it.
//
// A row's vocabulary is cut into chunks of `vocabulary_chunk` tokens, z = logit * (1 / temperature):
//
//     per chunk   top = largest z,  sum = sum of e^(z - top),  weighted = sum of e^(z - top) (z - top)
//     over them   top = largest top,  d = top_c - top,  sum = sum_c e^d sum_c,  weighted = sum_c e^d (weighted_c + d sum_c)
//
// Both levels add in the order of isa/row-reduce.h. Then log-probability = (z - top) - log(sum), entropy = log(sum) - weighted / sum.
#pragma once

#include "isa/gemm-block.h"
#include "isa/math.h"
#include "isa/row-reduce.h"
#include "ops/lm-head/lm-head.h"

KERNELS_BEGIN

using lm_head::ChunkArrays;
using lm_head::LogitsParams;
using lm_head::vocabulary_chunk;

// Tokens of a chunk that exist.
TRILITHON_INLINE int64_t chunk_tokens(int64_t vocabulary, int64_t chunk) {
  return at_most(vocabulary - chunk * vocabulary_chunk, vocabulary_chunk);
}

// Logits of rows [row_begin, row_end) and one chunk into c, [rows, stride]. One fma chain over the width for each.
inline void chunk_logits(const LogitsParams& p, int64_t row_begin, int64_t row_end, int64_t chunk, float* c, int64_t c_stride,
                         float* scratch) {
  const int64_t token = chunk * vocabulary_chunk;
  const Product product{p.hidden + row_begin * p.hidden_stride,
                        p.weight + token * (p.packed ? p.width : p.weight_stride),
                        c,
                        nullptr,
                        p.hidden_stride,
                        p.packed ? p.width : p.weight_stride,
                        c_stride,
                        p.width,
                        AForm::rows,
                        p.packed ? BForm::panels : BForm::transposed,
                        false};
  product_block(product, Block{0, row_end - row_begin, 0, chunk_tokens(p.vocabulary, chunk)}, scratch);
}

// A logit of -infinity has probability 0 and must not become NaN in z - top or in 0 * (z - top): beyond -104, e^x is 0 anyway.
TRILITHON_INLINE F distance(F z, F top_z) { return max(set(-104.0f), sub(z, top_z)); }

// Two sums at once in the order of row_sum. `step(a, b, index, count)` adds to both.
template <typename Step>
TRILITHON_INLINE void row_sums(int64_t length, float& a, float& b, Step step) {
  F as[4] = {zero(), zero(), zero(), zero()}, bs[4] = {zero(), zero(), zero(), zero()};
  int64_t i = 0;
  for (; i + 64 <= length; i += 64) {
    step(as[0], bs[0], i, 16);
    step(as[1], bs[1], i + 16, 16);
    step(as[2], bs[2], i + 32, 16);
    step(as[3], bs[3], i + 48, 16);
  }
  for (int chain = 0; chain < 4; ++chain) {
    const int64_t from = i + 16 * chain;
    if (from < length) step(as[chain], bs[chain], from, at_most(length - from, 16));
  }
  a = sum(add(add(as[0], as[1]), add(as[2], as[3])));
  b = sum(add(add(bs[0], bs[1]), add(bs[2], bs[3])));
}

// Largest of a row, scaled; -infinity of an empty one.
TRILITHON_INLINE float row_top(const float* values, int64_t count, F scale) {
  const F lowest = set(-__builtin_inff());
  F highest = lowest;
  for_lanes(count, [&](int64_t i, int64_t n) { highest = max(select(first(n), mul(load_n(values + i, n), scale), lowest), highest); });
  return top(highest);
}

// A finite number to subtract where the largest is -infinity.
TRILITHON_INLINE float finite_top(float largest) { return largest < -__FLT_MAX__ ? -__FLT_MAX__ : largest; }

// Sums of one chunk of one row.
inline void chunk_sums(const float* logits, int64_t count, float scale, ChunkArrays sums, int64_t chunk) {
  const F factor = set(scale);
  sums.tops[chunk] = row_top(logits, count, factor);
  const F top_z = set(finite_top(sums.tops[chunk]));
  row_sums(count, sums.sums[chunk], sums.weighted[chunk], [&](F& total, F& weighted, int64_t i, int64_t n) {
    const F d = distance(mul(load_n(logits + i, n), factor), top_z);
    const F e = select(first(n), exp(d), zero());
    total = add(total, e);
    weighted = fma(e, select(first(n), d, zero()), weighted);
  });
}

struct RowSums {
  float top, log_sum, sum, weighted;
};

TRILITHON_INLINE float log_of(float x) {
  float lanes_of[16];
  store(lanes_of, log(set(x)));
  return lanes_of[0];
}

// Sums of a row from those of its chunks.
inline RowSums combine_chunks(ChunkArrays sums, int64_t chunks) {
  RowSums row;
  row.top = row_top(sums.tops, chunks, set(1.0f));
  const F top_z = set(finite_top(row.top));
  row_sums(chunks, row.sum, row.weighted, [&](F& total, F& weighted, int64_t i, int64_t n) {
    const F d = select(first(n), distance(load_n(sums.tops + i, n), top_z), zero());
    const F e = exp(d), chunk_sum = load_n(sums.sums + i, n);
    total = fma(e, chunk_sum, total);
    weighted = fma(e, fma(d, chunk_sum, load_n(sums.weighted + i, n)), weighted);
  });
  row.log_sum = log_of(row.sum);
  return row;
}

TRILITHON_INLINE float logprob_of(float z, const RowSums& row) { return (z - row.top) - row.log_sum; }

KERNELS_END
