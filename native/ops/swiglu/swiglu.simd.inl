#include "isa/math.h"
#include "isa/row-reduce.h"
#include "ops/swiglu/swiglu.h"

KERNELS_BEGIN

using namespace swiglu;

void forward(const ForwardParams& p, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* gate = p.gate + row * p.gate_stride;
    const float* up = p.up + row * p.up_stride;
    float* y = p.y + row * p.y_stride;
    for_lanes(p.width, [&](int64_t i, int64_t n) { store_n(y + i, n, mul(silu(load_n(gate + i, n)), load_n(up + i, n))); });
  }
}

void backward(const BackwardParams& p, int64_t row_begin, int64_t row_end) {
  const F one = set(1.0f);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* d_y = p.d_y + row * p.d_y_stride;
    const float* gates = p.gate + row * p.gate_stride;
    const float* ups = p.up + row * p.up_stride;
    float* d_gate = p.d_gate + row * p.d_gate_stride;
    float* d_up = p.d_up + row * p.d_up_stride;
    for_lanes(p.width, [&](int64_t i, int64_t n) {
      // Everything is read before anything is written: outputs may be the memory of inputs.
      const F gradient = load_n(d_y + i, n), gate = load_n(gates + i, n), up = load_n(ups + i, n);
      const F s = sigmoid(gate);
      const F slope = mul(s, fma(gate, sub(one, s), one));
      store_n(d_gate + i, n, mul(mul(gradient, up), slope));
      store_n(d_up + i, n, mul(gradient, mul(gate, s)));
    });
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(swiglu, (forward, backward))
