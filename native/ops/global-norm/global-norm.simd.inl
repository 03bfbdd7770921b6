#include "isa/row-reduce.h"
#include "ops/global-norm/global-norm.h"

KERNELS_BEGIN

using global_norm::BlockSum;

BlockSum block(const float* x, int64_t count) {
  // Up to 16,384 ones are counted exactly in float.
  F not_finite = zero();
  const float squares = row_sum(count, [&](F total, int64_t i, int64_t n) {
    const F value = load_n(x + i, n);
    not_finite = add(not_finite, select(lt(abs(value), set(__builtin_inff())), zero(), set(1.0f)));
    return fma(value, value, total);
  });
  return {squares, sum(not_finite)};
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(global_norm, (block))
