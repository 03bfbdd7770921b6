// One step of an optimiser for one parameter: AdamW, SGD, sign SGD. README.md has the mathematics. Muon is an op of its own.
#pragma once

#include "include/kernels.h"
#include "include/op.h"

namespace trilithon::optimizers {

struct AdamW {
  static constexpr const char* op = "optimizers";
  static constexpr const char* name = "optimizers.adamw";
  static constexpr const char* summary = "One AdamW step; `step` counts from 1 and the gradient is multiplied by gradient_scale first.";

  TensorView param, gradient, first_moment, second_moment;
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0, gradient_scale = 1;
  int64_t step = 1;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.inout("param", param, floats, "any shape", maybe_empty);
    v.input("gradient", gradient, floats, "as param", maybe_empty);
    v.inout("first_moment", first_moment, floats, "as param", maybe_empty);
    v.inout("second_moment", second_moment, floats, "as param", maybe_empty);
    v.number("learning_rate", learning_rate);
    v.number("beta1", beta1);
    v.number("beta2", beta2);
    v.number("epsilon", epsilon);
    v.number("weight_decay", weight_decay);
    v.number("gradient_scale", gradient_scale);
    v.integer("step", step);
  }
};

struct Sgd {
  static constexpr const char* op = "optimizers";
  static constexpr const char* name = "optimizers.sgd";
  static constexpr const char* summary = "One step of SGD, with momentum and Nesterov's look-ahead where asked for.";

  TensorView param, gradient, velocity;
  double learning_rate = 0, momentum = 0, weight_decay = 0, gradient_scale = 1;
  bool nesterov = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.inout("param", param, floats, "any shape", maybe_empty);
    v.input("gradient", gradient, floats, "as param", maybe_empty);
    v.inout("velocity", velocity, floats, "as param", optional | maybe_empty);
    v.number("learning_rate", learning_rate);
    v.number("momentum", momentum);
    v.number("weight_decay", weight_decay);
    v.number("gradient_scale", gradient_scale);
    v.flag("nesterov", nesterov);
  }
};

struct SignSgd {
  static constexpr const char* op = "optimizers";
  static constexpr const char* name = "optimizers.sign-sgd";
  static constexpr const char* summary = "param = param * (1 - learning_rate * weight_decay) - learning_rate * sign(gradient).";

  TensorView param, gradient;
  double learning_rate = 0, weight_decay = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.inout("param", param, floats, "any shape", maybe_empty);
    v.input("gradient", gradient, floats, "as param", maybe_empty);
    v.number("learning_rate", learning_rate);
    v.number("weight_decay", weight_decay);
  }
};

Status run(const AdamW& args, Runtime& runtime);
Status run(const Sgd& args, Runtime& runtime);
Status run(const SignSgd& args, Runtime& runtime);

// What a step needs besides the tensors, computed in double and rounded once.
struct AdamWFactors {
  double keep;             // 1 - learning_rate * weight_decay
  double first, second;    // 1 - beta1, 1 - beta2
  double second_keep;      // beta2
  double root_correction;  // sqrt(1 - beta2^step)
  double step_size;        // learning_rate / (1 - beta1^step)
  double epsilon, gradient_scale;
};

AdamWFactors factors_of(const AdamW& args);

template <typename T>
void adamw_reference(const AdamW& args);
template <typename T>
void sgd_reference(const Sgd& args);
template <typename T>
void sign_sgd_reference(const SignSgd& args);

struct AdamWParams {
  float* param;
  const float* gradient;
  float* first_moment;
  float* second_moment;
  float keep, first, second, second_keep, root_correction, step_size, epsilon, gradient_scale;
};

struct SgdParams {
  float* param;
  const float* gradient;
  float* velocity;  // may be null
  float learning_rate, momentum, weight_decay, gradient_scale;
  bool nesterov;
};

struct SignSgdParams {
  float* param;
  const float* gradient;
  float keep, learning_rate;
};

struct Kernels {
  void (*adamw)(const AdamWParams& params, int64_t begin, int64_t end);
  void (*sgd)(const SgdParams& params, int64_t begin, int64_t end);
  void (*sign_sgd)(const SignSgdParams& params, int64_t begin, int64_t end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::optimizers
