#include "isa/math.h"
#include "isa/row-reduce.h"
#include "ops/rope/rope.h"

KERNELS_BEGIN

using namespace rope;

void tables(const TablesParams& p, int64_t token_begin, int64_t token_end) {
  const F scale = set(p.scale);
  for (int64_t t = token_begin; t < token_end; ++t) {
    const F position = set(static_cast<float>(p.positions[t]));
    for_lanes(p.half, [&](int64_t i, int64_t n) {
      F sine, cosine;
      sin_cos(mul(position, load_n(p.inverse_frequencies + i, n)), sine, cosine);
      store_n(p.cosines + t * p.half + i, n, mul(cosine, scale));
      store_n(p.sines + t * p.half + i, n, mul(sine, scale));
    });
  }
}

// Turns pairs (a, b) by the angle of which c and s are cosine and sine.
TRILITHON_INLINE void turn_pairs(F a, F b, F c, F s, F& turned_a, F& turned_b) {
  turned_a = fnma(b, s, mul(a, c));
  turned_b = fma(a, s, mul(b, c));
}

// y may be x: what an iteration writes it has read before, and no other reads it.
void turn(const TurnParams& p, int64_t token_begin, int64_t token_end) {
  for (int64_t t = token_begin; t < token_end; ++t) {
    const float* cosines = p.cosines + t * p.half;
    const float* sines = p.sines + t * p.half;
    for (int64_t h = 0; h < p.heads; ++h) {
      const float* x = p.x + t * p.x_token_stride + h * p.x_head_stride;
      float* y = p.y + t * p.y_token_stride + h * p.y_head_stride;
      for_lanes(p.half, [&](int64_t i, int64_t n) {
        const F c = load_n(cosines + i, n);
        const F s = p.back ? neg(load_n(sines + i, n)) : load_n(sines + i, n);
        F a, b;
        if (p.interleaved) {
          F low, high;
          unzip(load_n(x + 2 * i, 2 * n), load_n(x + 2 * i + 16, 2 * n - 16), a, b);
          turn_pairs(a, b, c, s, a, b);
          zip(a, b, low, high);
          store_n(y + 2 * i, 2 * n, low);
          store_n(y + 2 * i + 16, 2 * n - 16, high);
        } else {
          turn_pairs(load_n(x + i, n), load_n(x + p.half + i, n), c, s, a, b);
          store_n(y + i, n, a);
          store_n(y + p.half + i, n, b);
        }
      });
      if (x != y)
        for_lanes(p.width - 2 * p.half, [&](int64_t i, int64_t n) { store_n(y + 2 * p.half + i, n, load_n(x + 2 * p.half + i, n)); });
    }
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(rope, (tables, turn))
