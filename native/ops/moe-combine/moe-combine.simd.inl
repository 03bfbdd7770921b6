#include "isa/row-reduce.h"
#include "ops/moe-combine/moe-combine.h"

KERNELS_BEGIN

using namespace moe_combine;

void forward(const ForwardParams& p, int64_t token_begin, int64_t token_end) {
  for (int64_t t = token_begin; t < token_end; ++t) {
    const int32_t* rows = p.slot_row + t * p.top_k;
    const float* weights = p.weights + t * p.top_k;
    float* y = p.y + t * p.y_stride;
    for_lanes(p.width, [&](int64_t i, int64_t n) {
      F total = p.accumulate ? load_n(y + i, n) : zero();
      for (int64_t slot = 0; slot < p.top_k; ++slot) total = fma(set(weights[slot]), load_n(p.x + rows[slot] * p.x_stride + i, n), total);
      store_n(y + i, n, total);
    });
  }
}

void backward(const BackwardParams& p, int64_t token_begin, int64_t token_end) {
  for (int64_t t = token_begin; t < token_end; ++t) {
    const float* d_y = p.d_y + t * p.d_y_stride;
    for (int64_t slot = 0; slot < p.top_k; ++slot) {
      const int64_t row = p.slot_row[t * p.top_k + slot];
      const float* x = p.x + row * p.x_stride;
      float* d_x = p.d_x + row * p.d_x_stride;
      // The row of x is read to its end before its gradient, which may take its place, is written.
      p.d_weights[t * p.top_k + slot] =
          row_sum(p.width, [&](F total, int64_t i, int64_t n) { return fma(load_n(d_y + i, n), load_n(x + i, n), total); });
      const F weight = set(p.weights[t * p.top_k + slot]);
      for_lanes(p.width, [&](int64_t i, int64_t n) { store_n(d_x + i, n, mul(weight, load_n(d_y + i, n))); });
    }
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(moe_combine, (forward, backward))
