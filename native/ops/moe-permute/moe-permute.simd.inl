#include "isa/row-reduce.h"
#include "ops/moe-permute/moe-permute.h"

KERNELS_BEGIN

using namespace moe_permute;

void forward(const ForwardParams& p, int64_t token_begin, int64_t token_end) {
  for (int64_t t = token_begin; t < token_end; ++t) {
    const float* x = p.x + t * p.x_stride;
    for (int64_t slot = 0; slot < p.top_k; ++slot) {
      float* y = p.y + p.slot_row[t * p.top_k + slot] * p.y_stride;
      for_lanes(p.width, [&](int64_t i, int64_t n) { store_n(y + i, n, load_n(x + i, n)); });
    }
  }
}

void backward(const BackwardParams& p, int64_t token_begin, int64_t token_end) {
  for (int64_t t = token_begin; t < token_end; ++t) {
    const int32_t* rows = p.slot_row + t * p.top_k;
    float* d_x = p.d_x + t * p.d_x_stride;
    for_lanes(p.width, [&](int64_t i, int64_t n) {
      F total = p.accumulate ? load_n(d_x + i, n) : zero();
      for (int64_t slot = 0; slot < p.top_k; ++slot) total = add(total, load_n(p.d_y + rows[slot] * p.d_y_stride + i, n));
      store_n(d_x + i, n, total);
    });
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(moe_permute, (forward, backward))
