#include "isa/gemm-block.h"
#include "isa/row-reduce.h"
#include "ops/muon/muon.h"

KERNELS_BEGIN

using namespace muon;

void momentum(const MomentumParams& p, int64_t row_begin, int64_t row_end) {
  const F factor = set(p.momentum);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* gradients = p.gradient + row * p.columns;
    float* velocities = p.velocity + row * p.columns;
    float* direction = p.direction + row * p.columns;
    p.row_squares[row] = row_sum(p.columns, [&](F total, int64_t i, int64_t n) {
      const F gradient = mul(load_n(gradients + i, n), set(p.gradient_scale));
      const F velocity = fma(factor, load_n(velocities + i, n), gradient);
      const F ahead = p.nesterov ? fma(factor, velocity, gradient) : velocity;
      store_n(velocities + i, n, velocity);
      store_n(direction + i, n, ahead);
      return fma(ahead, ahead, total);
    });
  }
}

void scale(const float* x, float factor, float* y, int64_t begin, int64_t end) {
  for_lanes(end - begin, [&](int64_t i, int64_t n) { store_n(y + begin + i, n, mul(load_n(x + begin + i, n), set(factor))); });
}

void mix(const float* x, float b, float c, float* y, int64_t begin, int64_t end) {
  for_lanes(end - begin, [&](int64_t i, int64_t n) {
    store_n(y + begin + i, n, fma(set(c), load_n(y + begin + i, n), mul(set(b), load_n(x + begin + i, n))));
  });
}

void apply(const float* x, float keep, float rate, float* param, int64_t begin, int64_t end) {
  for_lanes(end - begin, [&](int64_t i, int64_t n) {
    store_n(param + begin + i, n, fnma(set(rate), load_n(x + begin + i, n), mul(load_n(param + begin + i, n), set(keep))));
  });
}

void product(const Product& p, const Block& block, float* scratch) { product_block(p, block, scratch); }

KERNELS_END

TRILITHON_EXPORT_KERNELS(muon, (momentum, scale, mix, apply, product))
