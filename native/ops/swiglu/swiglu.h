// SwiGLU: silu(gate) * up, from two matrices or from the two halves of one. README.md has the mathematics.
#pragma once

#include "include/kernels.h"
#include "include/op.h"

namespace trilithon::swiglu {

struct Forward {
  static constexpr const char* op = "swiglu";
  static constexpr const char* name = "swiglu.forward";
  static constexpr const char* summary = "y = silu(gate) * up.";

  TensorView gate, up, y;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("gate", gate, floats, "[tokens, width]", strided_rows | may_alias | maybe_empty);
    v.input("up", up, floats, "[tokens, width]", strided_rows | may_alias | maybe_empty);
    v.output("y", y, floats, "[tokens, width]", strided_rows | may_alias | maybe_empty);
  }
};

struct Backward {
  static constexpr const char* op = "swiglu";
  static constexpr const char* name = "swiglu.backward";
  static constexpr const char* summary = "Gradients of gate and up.";

  TensorView d_y, gate, up, d_gate, d_up;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_y", d_y, floats, "[tokens, width]", strided_rows | may_alias | maybe_empty);
    v.input("gate", gate, floats, "[tokens, width]", strided_rows | may_alias | maybe_empty);
    v.input("up", up, floats, "[tokens, width]", strided_rows | may_alias | maybe_empty);
    v.output("d_gate", d_gate, floats, "[tokens, width]", strided_rows | may_alias | maybe_empty);
    v.output("d_up", d_up, floats, "[tokens, width]", strided_rows | may_alias | maybe_empty);
  }
};

struct FusedForward {
  static constexpr const char* op = "swiglu";
  static constexpr const char* name = "swiglu.fused-forward";
  static constexpr const char* summary = "y = silu(gate) * up; gate is the first half of each row of gate_up, up the second.";

  TensorView gate_up, y;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("gate_up", gate_up, floats, "[tokens, 2 * width]", strided_rows | maybe_empty);
    v.output("y", y, floats, "[tokens, width]", strided_rows | maybe_empty);
  }
};

struct FusedBackward {
  static constexpr const char* op = "swiglu";
  static constexpr const char* name = "swiglu.fused-backward";
  static constexpr const char* summary = "Gradient of gate_up.";

  TensorView d_y, gate_up, d_gate_up;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_y", d_y, floats, "[tokens, width]", strided_rows | maybe_empty);
    v.input("gate_up", gate_up, floats, "[tokens, 2 * width]", strided_rows | may_alias | maybe_empty);
    v.output("d_gate_up", d_gate_up, floats, "[tokens, 2 * width]", strided_rows | may_alias | maybe_empty);
  }
};

Status run(const Forward& args, Runtime& runtime);
Status run(const Backward& args, Runtime& runtime);
Status run(const FusedForward& args, Runtime& runtime);
Status run(const FusedBackward& args, Runtime& runtime);

template <typename T>
void forward_reference(const Forward& args);
template <typename T>
void backward_reference(const Backward& args);

struct ForwardParams {
  const float* gate;
  const float* up;
  float* y;
  int64_t gate_stride, up_stride, y_stride, width;
};

struct BackwardParams {
  const float* d_y;
  const float* gate;
  const float* up;
  float* d_gate;
  float* d_up;
  int64_t d_y_stride, gate_stride, up_stride, d_gate_stride, d_up_stride, width;
};

struct Kernels {
  void (*forward)(const ForwardParams& params, int64_t row_begin, int64_t row_end);
  void (*backward)(const BackwardParams& params, int64_t row_begin, int64_t row_end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::swiglu
