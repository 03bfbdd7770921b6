#include "isa/row-reduce.h"
#include "ops/optimizers/optimizers.h"

KERNELS_BEGIN

using namespace optimizers;

void adamw(const AdamWParams& p, int64_t begin, int64_t end) {
  float* param = p.param + begin;
  const float* gradients = p.gradient + begin;
  float* first_moment = p.first_moment + begin;
  float* second_moment = p.second_moment + begin;
  for_lanes(end - begin, [&](int64_t i, int64_t n) {
    const F gradient = mul(load_n(gradients + i, n), set(p.gradient_scale));
    F m = load_n(first_moment + i, n);
    m = fma(set(p.first), sub(gradient, m), m);
    const F v = fma(set(p.second), mul(gradient, gradient), mul(load_n(second_moment + i, n), set(p.second_keep)));
    store_n(first_moment + i, n, m);
    store_n(second_moment + i, n, v);
    const F denominator = add(div(sqrt(v), set(p.root_correction)), set(p.epsilon));
    store_n(param + i, n, fnma(set(p.step_size), div(m, denominator), mul(load_n(param + i, n), set(p.keep))));
  });
}

void sgd(const SgdParams& p, int64_t begin, int64_t end) {
  float* params = p.param + begin;
  const float* gradients = p.gradient + begin;
  const F momentum = set(p.momentum);
  for_lanes(end - begin, [&](int64_t i, int64_t n) {
    const F param = load_n(params + i, n);
    F direction = fma(set(p.weight_decay), param, mul(load_n(gradients + i, n), set(p.gradient_scale)));
    if (p.velocity != nullptr) {
      float* const at = p.velocity + begin + i;
      const F velocity = fma(momentum, load_n(at, n), direction);
      store_n(at, n, velocity);
      direction = p.nesterov ? fma(momentum, velocity, direction) : velocity;
    }
    store_n(params + i, n, fnma(set(p.learning_rate), direction, param));
  });
}

void sign_sgd(const SignSgdParams& p, int64_t begin, int64_t end) {
  float* params = p.param + begin;
  const float* gradients = p.gradient + begin;
  for_lanes(end - begin, [&](int64_t i, int64_t n) {
    const F gradient = load_n(gradients + i, n);
    // 0 and NaN are their own sign: a fault must not look like a parameter at rest.
    const F sign = select(gt(gradient, zero()), set(1.0f), select(lt(gradient, zero()), set(-1.0f), gradient));
    store_n(params + i, n, fnma(set(p.learning_rate), sign, mul(load_n(params + i, n), set(p.keep))));
  });
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(optimizers, (adamw, sgd, sign_sgd))
