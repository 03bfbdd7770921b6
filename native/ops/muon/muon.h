// One step of Muon: momentum, made orthogonal by Newton-Schulz iterations, for matrices. README.md has the mathematics.
#pragma once

#include "include/kernels.h"
#include "include/op.h"
#include "isa/gemm-plan.h"

namespace trilithon::muon {

// X <- a X + (b A + c A A) X with A = X Xᵀ, once for each. Those of the dion library; any matrix with a spectral norm of at most
// 1 ends with singular values near 1.
struct Coefficients {
  double a, b, c;
};
inline constexpr Coefficients iterations[] = {
    {4.0848, -6.8946, 2.9270}, {3.9505, -6.3029, 2.6377}, {3.7418, -5.5913, 2.3037}, {2.8769, -3.1427, 1.2046}, {2.8366, -3.0525, 1.2012}};

struct Step {
  static constexpr const char* op = "muon";
  static constexpr const char* name = "muon.step";
  static constexpr const char* summary =
      "One Muon step for each matrix; update_rate is the learning rate adjusted to its shape, learning_rate that of the decay.";

  TensorView param, gradient, velocity;
  double learning_rate = 0, update_rate = 0, momentum = 0, weight_decay = 0, epsilon = 0, gradient_scale = 1;
  bool nesterov = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.inout("param", param, floats, "[..., rows, columns]", maybe_empty);
    v.input("gradient", gradient, floats, "as param", maybe_empty);
    v.inout("velocity", velocity, floats, "as param", maybe_empty);
    v.number("learning_rate", learning_rate);
    v.number("update_rate", update_rate);
    v.number("momentum", momentum);
    v.number("weight_decay", weight_decay);
    v.number("epsilon", epsilon);
    v.number("gradient_scale", gradient_scale);
    v.flag("nesterov", nesterov);
  }
};

Status run(const Step& args, Runtime& runtime);

template <typename T>
void step_reference(const Step& args);

struct MomentumParams {
  const float* gradient;
  float* velocity;
  float* direction;
  float* row_squares;
  int64_t columns;
  float momentum, gradient_scale;
  bool nesterov;
};

struct Kernels {
  // velocity = momentum * velocity + gradient; direction = velocity, or looked ahead; sum of squares of each row of it.
  void (*momentum)(const MomentumParams& params, int64_t row_begin, int64_t row_end);
  void (*scale)(const float* x, float factor, float* y, int64_t begin, int64_t end);                // y = x * factor
  void (*mix)(const float* x, float b, float c, float* y, int64_t begin, int64_t end);              // y = b * x + c * y
  void (*apply)(const float* x, float keep, float rate, float* param, int64_t begin, int64_t end);  // param * keep - rate * x
  void (*product)(const Product& product, const Block& block, float* scratch);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::muon
