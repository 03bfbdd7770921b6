#include <cmath>

#include "ops/optimizers/optimizers.h"

namespace trilithon::optimizers {

template <typename T>
void adamw_reference(const AdamW& a) {
  const AdamWFactors f = factors_of(a);
  for (int64_t i = 0; i < a.param.elements(); ++i) {
    T& param = a.param.as<T>()[i];
    T& m = a.first_moment.as<T>()[i];
    T& v = a.second_moment.as<T>()[i];
    const T gradient = a.gradient.as<T>()[i] * T(f.gradient_scale);
    param *= T(f.keep);
    m += T(f.first) * (gradient - m);
    v = v * T(f.second_keep) + T(f.second) * (gradient * gradient);
    param -= T(f.step_size) * (m / (std::sqrt(v) / T(f.root_correction) + T(f.epsilon)));
  }
}

template <typename T>
void sgd_reference(const Sgd& a) {
  for (int64_t i = 0; i < a.param.elements(); ++i) {
    T& param = a.param.as<T>()[i];
    T direction = a.gradient.as<T>()[i] * T(a.gradient_scale) + T(a.weight_decay) * param;
    if (a.momentum != 0) {
      T& velocity = a.velocity.as<T>()[i];
      velocity = T(a.momentum) * velocity + direction;
      direction = a.nesterov ? direction + T(a.momentum) * velocity : velocity;
    }
    param -= T(a.learning_rate) * direction;
  }
}

template <typename T>
void sign_sgd_reference(const SignSgd& a) {
  for (int64_t i = 0; i < a.param.elements(); ++i) {
    T& param = a.param.as<T>()[i];
    const T gradient = a.gradient.as<T>()[i];
    const T sign = gradient > 0 ? T(1) : gradient < 0 ? T(-1) : gradient;
    param = param * T(1 - a.learning_rate * a.weight_decay) - T(a.learning_rate) * sign;
  }
}

#define TRILITHON_INSTANTIATE(T)                  \
  template void adamw_reference<T>(const AdamW&); \
  template void sgd_reference<T>(const Sgd&);     \
  template void sign_sgd_reference<T>(const SignSgd&);
TRILITHON_INSTANTIATE(float)
TRILITHON_INSTANTIATE(double)

}  // namespace trilithon::optimizers
