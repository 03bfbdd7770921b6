#include "ops/optimizers/optimizers.h"

#include <cmath>

#include "include/check.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(optimizers)

namespace trilithon::optimizers {
namespace {

// base^exponent by squaring: the library's pow may differ in the last bit from one system to the next.
double power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return result;
}

void check_number(Check& check, const char* argument, double value, double below) {
  const bool bounded = std::isfinite(below);
  check.that(value >= 0 && value < below, argument, bounded ? "a number from 0, below " + number_text(below) : "a number >= 0",
             number_text(value));
}

constexpr double unbounded = INFINITY;

}  // namespace

AdamWFactors factors_of(const AdamW& a) {
  return {1 - a.learning_rate * a.weight_decay,           1 - a.beta1, 1 - a.beta2,     a.beta2, std::sqrt(1 - power(a.beta2, a.step)),
          a.learning_rate / (1 - power(a.beta1, a.step)), a.epsilon,   a.gradient_scale};
}

Status run(const AdamW& a, Runtime& runtime) {
  Check check(AdamW::name);
  check.same_shape("gradient", a.gradient, "param", a.param);
  check.same_shape("first_moment", a.first_moment, "param", a.param);
  check.same_shape("second_moment", a.second_moment, "param", a.param);
  check_number(check, "learning_rate", a.learning_rate, unbounded);
  check_number(check, "beta1", a.beta1, 1);
  check_number(check, "beta2", a.beta2, 1);
  check_number(check, "epsilon", a.epsilon, unbounded);
  check_number(check, "weight_decay", a.weight_decay, unbounded);
  check.that(a.step >= 1, "step", "a count from 1", std::to_string(a.step));
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.param.dtype)) {
    with_floating(a.param.dtype, [&]<typename T>() { adamw_reference<T>(a); });
    return {};
  }
  const AdamWFactors f = factors_of(a);
  const auto rounded = [](double value) { return static_cast<float>(value); };
  const AdamWParams params{a.param.as<float>(),         a.gradient.as<float>(), a.first_moment.as<float>(),
                           a.second_moment.as<float>(), rounded(f.keep),        rounded(f.first),
                           rounded(f.second),           rounded(f.second_keep), rounded(f.root_correction),
                           rounded(f.step_size),        rounded(f.epsilon),     rounded(f.gradient_scale)};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).adamw;
  return runtime.parallel(AdamW::name, a.param.elements(), Runtime::grain(28),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

Status run(const Sgd& a, Runtime& runtime) {
  Check check(Sgd::name);
  check.same_shape("gradient", a.gradient, "param", a.param);
  check.same_shape("velocity", a.velocity, "param", a.param);
  check_number(check, "learning_rate", a.learning_rate, unbounded);
  check_number(check, "momentum", a.momentum, unbounded);
  check_number(check, "weight_decay", a.weight_decay, unbounded);
  check.that(a.momentum == 0 || a.velocity.present(), "velocity", "a tensor, because momentum is not 0", "nothing");
  check.that(!a.nesterov || a.momentum > 0, "momentum", "a number above 0, because nesterov is set", number_text(a.momentum));
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.param.dtype)) {
    with_floating(a.param.dtype, [&]<typename T>() { sgd_reference<T>(a); });
    return {};
  }
  const SgdParams params{a.param.as<float>(),
                         a.gradient.as<float>(),
                         a.momentum == 0 ? nullptr : a.velocity.as<float>(),
                         static_cast<float>(a.learning_rate),
                         static_cast<float>(a.momentum),
                         static_cast<float>(a.weight_decay),
                         static_cast<float>(a.gradient_scale),
                         a.nesterov};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).sgd;
  return runtime.parallel(Sgd::name, a.param.elements(), Runtime::grain(20),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

Status run(const SignSgd& a, Runtime& runtime) {
  Check check(SignSgd::name);
  check.same_shape("gradient", a.gradient, "param", a.param);
  check_number(check, "learning_rate", a.learning_rate, unbounded);
  check_number(check, "weight_decay", a.weight_decay, unbounded);
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.param.dtype)) {
    with_floating(a.param.dtype, [&]<typename T>() { sign_sgd_reference<T>(a); });
    return {};
  }
  const SignSgdParams params{a.param.as<float>(), a.gradient.as<float>(), static_cast<float>(1 - a.learning_rate * a.weight_decay),
                             static_cast<float>(a.learning_rate)};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).sign_sgd;
  return runtime.parallel(SignSgd::name, a.param.elements(), Runtime::grain(12),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

}  // namespace trilithon::optimizers

namespace trilithon {

void register_optimizers(OpRegistry& registry) {
  add_entry<optimizers::AdamW>(registry);
  add_entry<optimizers::Sgd>(registry);
  add_entry<optimizers::SignSgd>(registry);
}

}  // namespace trilithon
