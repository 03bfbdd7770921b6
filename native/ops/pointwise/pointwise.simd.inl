#include "ops/pointwise/pointwise.h"

#include "isa/row-reduce.h"

KERNELS_BEGIN

using namespace pointwise;

void fill(Line y, float value, int64_t count) {
  if (y.step == 1) {
    for_lanes(count, [&](int64_t i, int64_t n) { store_n(y.data + i, n, set(value)); });
  } else {
    for (int64_t i = 0; i < count; ++i) y.data[i * y.step] = value;
  }
}

// Both ways round the same IEEE operations: vectors where there are no gaps, else one element at a time.
#define TRILITHON_POINTWISE(condition, vector, single)                               \
  if (condition) {                                                                   \
    for_lanes(count, [&](int64_t i, int64_t n) { store_n(y.data + i, n, vector); }); \
  } else {                                                                           \
    for (int64_t i = 0; i < count; ++i) y.data[i * y.step] = single;                 \
  }

void add(Line a, Line b, Line y, int64_t count) {
  TRILITHON_POINTWISE(a.step == 1 && b.step == 1 && y.step == 1, (add(load_n(a.data + i, n), load_n(b.data + i, n))),
                      a.data[i * a.step] + b.data[i * b.step])
}

void multiply(Line a, Line b, Line y, int64_t count) {
  TRILITHON_POINTWISE(a.step == 1 && b.step == 1 && y.step == 1, (mul(load_n(a.data + i, n), load_n(b.data + i, n))),
                      a.data[i * a.step] * b.data[i * b.step])
}

void multiply_add(Line a, Line b, Line y, int64_t count) {
  TRILITHON_POINTWISE(a.step == 1 && b.step == 1 && y.step == 1, (fma(load_n(a.data + i, n), load_n(b.data + i, n), load_n(y.data + i, n))),
                      __builtin_fmaf(a.data[i * a.step], b.data[i * b.step], y.data[i * y.step]))
}

void scale(Line x, Line y, float factor, int64_t count) {
  TRILITHON_POINTWISE(x.step == 1 && y.step == 1, (mul(set(factor), load_n(x.data + i, n))), factor * x.data[i * x.step])
}

void add_scaled(Line x, Line y, float factor, int64_t count){
    TRILITHON_POINTWISE(x.step == 1 && y.step == 1, (fma(set(factor), load_n(x.data + i, n), load_n(y.data + i, n))),
                        __builtin_fmaf(factor, x.data[i * x.step], y.data[i * y.step]))}

#undef TRILITHON_POINTWISE

KERNELS_END

    TRILITHON_EXPORT_KERNELS(pointwise, (fill, add, multiply, multiply_add, scale, add_scaled))
