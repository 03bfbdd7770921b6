#include "isa/math.h"
#include "isa/row-reduce.h"
#include "ops/rms-norm/rms-norm.h"

KERNELS_BEGIN

using namespace rms_norm;

void forward(const ForwardParams& p, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = p.x + row * p.x_stride;
    float* y = p.y + row * p.y_stride;
    const float squares = row_sum(p.width, [&](F total, int64_t i, int64_t n) {
      const F v = load_n(x + i, n);
      return fma(v, v, total);
    });
    const float rstd = 1.0f / __builtin_sqrtf(squares / static_cast<float>(p.width) + p.eps);
    const F scale = set(rstd);
    for_lanes(p.width, [&](int64_t i, int64_t n) { store_n(y + i, n, mul(load_n(p.weight + i, n), mul(load_n(x + i, n), scale))); });
    if (p.rstd != nullptr) p.rstd[row] = rstd;
  }
}

void backward_x(const BackwardParams& p, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* d_y = p.d_y + row * p.d_y_stride;
    const float* x = p.x + row * p.x_stride;
    float* d_x = p.d_x + row * p.d_x_stride;
    const F rstd = set(p.rstd[row]);
    const float dot = row_sum(p.width, [&](F total, int64_t i, int64_t n) {
      return fma(mul(load_n(d_y + i, n), load_n(p.weight + i, n)), mul(load_n(x + i, n), rstd), total);
    });
    const F mean = set(dot / static_cast<float>(p.width));
    for_lanes(p.width, [&](int64_t i, int64_t n) {
      const F g = mul(load_n(d_y + i, n), load_n(p.weight + i, n));
      store_n(d_x + i, n, mul(rstd, fnma(mul(load_n(x + i, n), rstd), mean, g)));
    });
  }
}

// One fma chain per column over the rows in ascending order. Rows are read four at a time so that the running sums are
// loaded and stored once per four.
void backward_weight(const BackwardParams& p, int64_t column_begin, int64_t column_end) {
  const auto term = [&p](F total, int64_t row, int64_t column, int64_t n) {
    const F normalised = mul(load_n(p.x + row * p.x_stride + column, n), set(p.rstd[row]));
    return fma(load_n(p.d_y + row * p.d_y_stride + column, n), normalised, total);
  };
  float* d_weight = p.d_weight + column_begin;
  const int64_t columns = column_end - column_begin;
  if (!p.accumulate) for_lanes(columns, [&](int64_t i, int64_t n) { store_n(d_weight + i, n, zero()); });
  for (int64_t row = 0; row < p.tokens;) {
    const int64_t count = p.tokens - row >= 4 ? 4 : 1;
    for_lanes(columns, [&](int64_t i, int64_t n) {
      F total = load_n(d_weight + i, n);
      for (int64_t k = 0; k < count; ++k) total = term(total, row + k, column_begin + i, n);
      store_n(d_weight + i, n, total);
    });
    row += count;
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(rms_norm, (forward, backward_x, backward_weight))
