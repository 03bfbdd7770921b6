#include "ops/sampling/sampling.h"

#include "ops/lm-head/log-softmax.h"

KERNELS_BEGIN

// This op's RowSums is the part of log-softmax.h's that leaves the kernels.
using OpRowSums = sampling::RowSums;

TRILITHON_INLINE ChunkArrays arrays_of(float* partials, int64_t chunks) { return {partials, partials + chunks, partials + 2 * chunks}; }

void hidden_sums(const LogitsParams& p, int64_t rows, int64_t chunk, const float* scales, float* logits, float* partials, int64_t chunks,
                 float* scratch) {
  float* const block = logits + chunk * vocabulary_chunk;
  chunk_logits(p, 0, rows, chunk, block, p.vocabulary, scratch);
  for (int64_t row = 0; row < rows; ++row) {
    chunk_sums(block + row * p.vocabulary, chunk_tokens(p.vocabulary, chunk), scales[row], arrays_of(partials + row * 3 * chunks, chunks),
               chunk);
  }
}

void logit_sums(const float* logits, int64_t vocabulary, float scale, float* partials, int64_t chunks) {
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    chunk_sums(logits + chunk * vocabulary_chunk, chunk_tokens(vocabulary, chunk), scale, arrays_of(partials, chunks), chunk);
  }
}

OpRowSums combine(const float* partials, int64_t chunks) {
  const auto sums = combine_chunks(arrays_of(const_cast<float*>(partials), chunks), chunks);
  return {sums.top, sums.log_sum};
}

void weights(const float* logits, int64_t count, float scale, float top_z, float* result) {
  for_lanes(count,
            [&](int64_t i, int64_t n) { store_n(result + i, n, exp(distance(mul(load_n(logits + i, n), set(scale)), set(top_z)))); });
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(sampling, (hidden_sums, logit_sums, combine, weights))
