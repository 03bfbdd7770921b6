// RMSNorm: each row divided by its root mean square, times a weight per column. README.md has the mathematics.
#pragma once

#include "include/kernels.h"
#include "include/op.h"

namespace trilithon::rms_norm {

struct Forward {
  static constexpr const char* op = "rms-norm";
  static constexpr const char* name = "rms-norm.forward";
  static constexpr const char* summary = "y = weight * x * rstd with rstd = 1 / sqrt(mean(x^2) + eps) of each row.";

  TensorView x, weight, y, rstd;
  double eps = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "[tokens, width]", strided_rows);
    v.input("weight", weight, floats, "[width]");
    v.output("y", y, floats, "[tokens, width]", strided_rows);
    v.output("rstd", rstd, floats, "[tokens]", optional);
    v.number("eps", eps);
  }
};

struct Backward {
  static constexpr const char* op = "rms-norm";
  static constexpr const char* name = "rms-norm.backward";
  static constexpr const char* summary = "Gradients of x and weight; accumulate adds to d_weight instead of setting it.";

  TensorView d_y, x, weight, rstd, d_x, d_weight;
  bool accumulate = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_y", d_y, floats, "[tokens, width]", strided_rows);
    v.input("x", x, floats, "[tokens, width]", strided_rows);
    v.input("weight", weight, floats, "[width]");
    v.input("rstd", rstd, floats, "[tokens]");
    v.output("d_x", d_x, floats, "[tokens, width]", strided_rows);
    v.inout("d_weight", d_weight, floats, "[width]");
    v.flag("accumulate", accumulate);
  }
};

Status run(const Forward& args, Runtime& runtime);
Status run(const Backward& args, Runtime& runtime);

template <typename T>
void forward_reference(const Forward& args);
template <typename T>
void backward_reference(const Backward& args);

// What the kernels see: plain pointers and sizes; strides in elements.
struct ForwardParams {
  const float* x;
  const float* weight;
  float* y;
  float* rstd;  // may be null
  int64_t x_stride, y_stride, width;
  float eps;
};

struct BackwardParams {
  const float* d_y;
  const float* x;
  const float* weight;
  const float* rstd;
  float* d_x;
  float* d_weight;
  int64_t d_y_stride, x_stride, d_x_stride, tokens, width;
  bool accumulate;
};

struct Kernels {
  void (*forward)(const ForwardParams& params, int64_t row_begin, int64_t row_end);
  void (*backward_x)(const BackwardParams& params, int64_t row_begin, int64_t row_end);
  void (*backward_weight)(const BackwardParams& params, int64_t column_begin, int64_t column_end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::rms_norm
