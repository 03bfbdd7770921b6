#include "isa/math.h"
#include "isa/row-reduce.h"
#include "ops/layer-norm/layer-norm.h"

KERNELS_BEGIN

using namespace layer_norm;

void forward(const ForwardParams& p, int64_t row_begin, int64_t row_end) {
  const float width = static_cast<float>(p.width);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = p.x + row * p.x_stride;
    float* y = p.y + row * p.y_stride;
    const float mean = row_sum(p.width, [&](F total, int64_t i, int64_t n) { return add(total, load_n(x + i, n)); }) / width;
    const F centre = set(mean);
    // The squares of differences, not the difference of squares: the latter cancels. A missing lane differs by 0.
    const float squares = row_sum(p.width, [&](F total, int64_t i, int64_t n) {
      const F difference = select(first(n), sub(load_n(x + i, n), centre), zero());
      return fma(difference, difference, total);
    });
    const float rstd = 1.0f / __builtin_sqrtf(squares / width + p.eps);
    const F scale = set(rstd);
    for_lanes(p.width, [&](int64_t i, int64_t n) {
      const F normalised = mul(sub(load_n(x + i, n), centre), scale);
      const F bias = p.bias == nullptr ? zero() : load_n(p.bias + i, n);
      store_n(y + i, n, fma(load_n(p.weight + i, n), normalised, bias));
    });
    if (p.mean != nullptr) p.mean[row] = mean;
    if (p.rstd != nullptr) p.rstd[row] = rstd;
  }
}

void backward_x(const BackwardParams& p, int64_t row_begin, int64_t row_end) {
  const float width = static_cast<float>(p.width);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* d_y = p.d_y + row * p.d_y_stride;
    const float* x = p.x + row * p.x_stride;
    float* d_x = p.d_x + row * p.d_x_stride;
    const F centre = set(p.mean[row]), rstd = set(p.rstd[row]);
    const auto gradient = [&](int64_t i, int64_t n) { return mul(load_n(d_y + i, n), load_n(p.weight + i, n)); };
    const auto normalised = [&](int64_t i, int64_t n) { return mul(sub(load_n(x + i, n), centre), rstd); };
    // A missing lane has gradient 0 and adds nothing to either.
    const float total = row_sum(p.width, [&](F sum, int64_t i, int64_t n) { return add(sum, gradient(i, n)); });
    const float dot = row_sum(p.width, [&](F sum, int64_t i, int64_t n) { return fma(gradient(i, n), normalised(i, n), sum); });
    const F mean_gradient = set(total / width), mean_dot = set(dot / width);
    for_lanes(p.width, [&](int64_t i, int64_t n) {
      store_n(d_x + i, n, mul(rstd, fnma(normalised(i, n), mean_dot, sub(gradient(i, n), mean_gradient))));
    });
  }
}

// One chain per column over the rows in ascending order.
void backward_weight(const BackwardParams& p, int64_t column_begin, int64_t column_end) {
  const int64_t columns = column_end - column_begin;
  float* d_weight = p.d_weight + column_begin;
  float* d_bias = p.d_bias == nullptr ? nullptr : p.d_bias + column_begin;
  if (!p.accumulate) {
    for_lanes(columns, [&](int64_t i, int64_t n) { store_n(d_weight + i, n, zero()); });
    if (d_bias != nullptr) for_lanes(columns, [&](int64_t i, int64_t n) { store_n(d_bias + i, n, zero()); });
  }
  // Rows are read four at a time so that the running sums are loaded and stored once per four.
  for (int64_t row = 0; row < p.tokens;) {
    const int64_t count = p.tokens - row >= 4 ? 4 : 1;
    for_lanes(columns, [&](int64_t i, int64_t n) {
      F weight = load_n(d_weight + i, n), bias = d_bias == nullptr ? zero() : load_n(d_bias + i, n);
      for (int64_t k = row; k < row + count; ++k) {
        const F d_y = load_n(p.d_y + k * p.d_y_stride + column_begin + i, n);
        const F x = load_n(p.x + k * p.x_stride + column_begin + i, n);
        weight = fma(d_y, mul(sub(x, set(p.mean[k])), set(p.rstd[k])), weight);
        bias = add(bias, d_y);
      }
      store_n(d_weight + i, n, weight);
      if (d_bias != nullptr) store_n(d_bias + i, n, bias);
    });
    row += count;
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(layer_norm, (forward, backward_x, backward_weight))
