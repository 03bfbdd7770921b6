// Experts' rows back to their tokens: weighted sum in the order of the slots, and its gradient. README.md has the mathematics.
#pragma once

#include "include/kernels.h"
#include "include/op.h"

namespace trilithon::moe_combine {

struct Forward {
  static constexpr const char* op = "moe-combine";
  static constexpr const char* name = "moe-combine.forward";
  static constexpr const char* summary = "y[t] = sum over slots j of weights[t, j] * x[slot_row[t, j]]; accumulate adds to y.";

  TensorView x, slot_row, weights, y;
  bool accumulate = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "[rows, width]", strided_rows | maybe_empty);
    v.input("slot_row", slot_row, only(DType::i32), "[tokens, top_k]", maybe_empty);
    v.input("weights", weights, floats, "[tokens, top_k]", maybe_empty);
    v.inout("y", y, floats, "[tokens, width]", strided_rows | maybe_empty);
    v.flag("accumulate", accumulate);
  }
};

struct Backward {
  static constexpr const char* op = "moe-combine";
  static constexpr const char* name = "moe-combine.backward";
  static constexpr const char* summary = "Gradients of the experts' rows and of the weights.";

  TensorView d_y, x, slot_row, weights, d_x, d_weights;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_y", d_y, floats, "[tokens, width]", strided_rows | maybe_empty);
    v.input("x", x, floats, "[tokens * top_k, width]", strided_rows | maybe_empty | may_alias);
    v.input("slot_row", slot_row, only(DType::i32), "[tokens, top_k]", maybe_empty);
    v.input("weights", weights, floats, "[tokens, top_k]", maybe_empty);
    v.output("d_x", d_x, floats, "[tokens * top_k, width]", strided_rows | maybe_empty | may_alias);
    v.output("d_weights", d_weights, floats, "[tokens, top_k]", maybe_empty);
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
  const int32_t* slot_row;
  const float* weights;
  float* y;
  int64_t x_stride, y_stride, top_k, width;
  bool accumulate;
};

struct BackwardParams {
  const float* d_y;
  const float* x;
  const int32_t* slot_row;
  const float* weights;
  float* d_x;
  float* d_weights;
  int64_t d_y_stride, x_stride, d_x_stride, top_k, width;
};

struct Kernels {
  void (*forward)(const ForwardParams& params, int64_t token_begin, int64_t token_end);
  void (*backward)(const BackwardParams& params, int64_t token_begin, int64_t token_end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::moe_combine
