#include "isa/math.h"
#include "isa/row-reduce.h"
#include "ops/elementary/elementary.h"

KERNELS_BEGIN

using elementary::Function;

template <typename Op>
TRILITHON_INLINE void map_with(const float* x, float* y, int64_t count, Op op) {
  for_lanes(count, [&](int64_t i, int64_t n) { store_n(y + i, n, op(load_n(x + i, n))); });
}

void map(Function function, const float* x, float* y, int64_t begin, int64_t end) {
  x += begin;
  y += begin;
  const int64_t count = end - begin;
  switch (function) {
    case Function::exp:
      return map_with(x, y, count, [](F v) { return exp(v); });
    case Function::log:
      return map_with(x, y, count, [](F v) { return log(v); });
    case Function::rsqrt:
      return map_with(x, y, count, [](F v) { return rsqrt(v); });
    case Function::sigmoid:
      return map_with(x, y, count, [](F v) { return sigmoid(v); });
    case Function::silu:
      return map_with(x, y, count, [](F v) { return silu(v); });
    case Function::sin:
      return map_with(x, y, count, [](F v) {
        F sine, cosine;
        sin_cos(v, sine, cosine);
        return sine;
      });
    case Function::cos:
      return map_with(x, y, count, [](F v) {
        F sine, cosine;
        sin_cos(v, sine, cosine);
        return cosine;
      });
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(elementary, (map))
