#include "ops/lm-head/log-softmax.h"

KERNELS_BEGIN

using namespace lm_head;

TRILITHON_INLINE ChunkArrays arrays_of(const ForwardParams& p, int64_t row) {
  float* const partials = p.partials + row * 3 * p.chunks;
  return {partials, partials + p.chunks, partials + 2 * p.chunks};
}

void sums(const ForwardParams& p, int64_t row_begin, int64_t row_end, int64_t chunk, float* scratch) {
  float* const logits = scratch + product_scratch_bytes / sizeof(float);
  const int64_t count = chunk_tokens(p.logits.vocabulary, chunk);
  chunk_logits(p.logits, row_begin, row_end, chunk, logits, vocabulary_chunk, scratch);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* row_logits = logits + (row - row_begin) * vocabulary_chunk;
    const float scale = 1.0f / p.temperature[row];
    chunk_sums(row_logits, count, scale, arrays_of(p, row), chunk);
    const int64_t target = p.targets[row] - chunk * vocabulary_chunk;
    if (target >= 0 && target < count) p.target_logits[row] = row_logits[target] * scale;
  }
}

void finish(const ForwardParams& p, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const RowSums all = combine_chunks(arrays_of(p, row), p.chunks);
    p.logprob[row] = logprob_of(p.target_logits[row], all);
    if (p.entropy != nullptr) p.entropy[row] = all.log_sum - all.weighted / all.sum;
    if (p.stats != nullptr) {
      p.stats[2 * row] = all.top;
      p.stats[2 * row + 1] = all.log_sum;
    }
  }
}

void d_logits(const BackwardParams& p, int64_t row_begin, int64_t row_end, int64_t chunk, float* scratch) {
  const int64_t count = chunk_tokens(p.logits.vocabulary, chunk);
  float* const block = p.d_logits + (chunk - p.first_chunk) * vocabulary_chunk;
  chunk_logits(p.logits, row_begin, row_end, chunk, block + row_begin * p.d_logits_stride, p.d_logits_stride, scratch);
  for (int64_t row = row_begin; row < row_end; ++row) {
    float* const logits = block + row * p.d_logits_stride;
    const float scale = 1.0f / p.temperature[row], gradient = p.d_logprob[row] * scale;
    const F factor = set(scale), top_z = set(p.stats[2 * row]), log_sum = set(p.stats[2 * row + 1]), negative = set(-gradient);
    for_lanes(count, [&](int64_t i, int64_t n) {
      const F probability = exp(sub(sub(mul(load_n(logits + i, n), factor), top_z), log_sum));
      store_n(logits + i, n, mul(negative, probability));
    });
    const int64_t target = p.targets[row] - chunk * vocabulary_chunk;
    if (target >= 0 && target < count) logits[target] += gradient;
  }
}

void product(const Product& p, const Block& block, float* scratch) { product_block(p, block, scratch); }

KERNELS_END

TRILITHON_EXPORT_KERNELS(lm_head, (sums, finish, d_logits, product))
