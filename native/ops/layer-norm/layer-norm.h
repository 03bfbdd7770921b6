// LayerNorm: each row minus its mean, divided by its deviation, times a weight plus a bias per column. README.md has the mathematics.
#pragma once

#include "include/kernels.h"
#include "include/op.h"

namespace trilithon::layer_norm {

struct Forward {
  static constexpr const char* op = "layer-norm";
  static constexpr const char* name = "layer-norm.forward";
  static constexpr const char* summary = "y = weight * (x - mean) * rstd + bias with rstd = 1 / sqrt(variance + eps) of each row.";

  TensorView x, weight, bias, y, mean, rstd;
  double eps = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "[tokens, width]", strided_rows);
    v.input("weight", weight, floats, "[width]");
    v.input("bias", bias, floats, "[width]", optional);
    v.output("y", y, floats, "[tokens, width]", strided_rows);
    v.output("mean", mean, floats, "[tokens]", optional);
    v.output("rstd", rstd, floats, "[tokens]", optional);
    v.number("eps", eps);
  }
};

struct Backward {
  static constexpr const char* op = "layer-norm";
  static constexpr const char* name = "layer-norm.backward";
  static constexpr const char* summary = "Gradients of x, weight and bias; accumulate adds to those of weight and bias.";

  TensorView d_y, x, weight, mean, rstd, d_x, d_weight, d_bias;
  bool accumulate = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_y", d_y, floats, "[tokens, width]", strided_rows);
    v.input("x", x, floats, "[tokens, width]", strided_rows);
    v.input("weight", weight, floats, "[width]");
    v.input("mean", mean, floats, "[tokens]");
    v.input("rstd", rstd, floats, "[tokens]");
    v.output("d_x", d_x, floats, "[tokens, width]", strided_rows);
    v.inout("d_weight", d_weight, floats, "[width]");
    v.inout("d_bias", d_bias, floats, "[width]", optional);
    v.flag("accumulate", accumulate);
  }
};

Status run(const Forward& args, Runtime& runtime);
Status run(const Backward& args, Runtime& runtime);

template <typename T>
void forward_reference(const Forward& args);
template <typename T>
void backward_reference(const Backward& args);

struct ForwardParams {
  const float* x;
  const float* weight;
  const float* bias;  // may be null
  float* y;
  float* mean;  // may be null
  float* rstd;  // may be null
  int64_t x_stride, y_stride, width;
  float eps;
};

struct BackwardParams {
  const float* d_y;
  const float* x;
  const float* weight;
  const float* mean;
  const float* rstd;
  float* d_x;
  float* d_weight;
  float* d_bias;  // may be null
  int64_t d_y_stride, x_stride, d_x_stride, tokens, width;
  bool accumulate;
};

struct Kernels {
  void (*forward)(const ForwardParams& params, int64_t row_begin, int64_t row_end);
  void (*backward_x)(const BackwardParams& params, int64_t row_begin, int64_t row_end);
  void (*backward_weight)(const BackwardParams& params, int64_t column_begin, int64_t column_end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::layer_norm
