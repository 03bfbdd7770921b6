// Tokens sorted by expert: where each goes, their rows there, and the gradient back. README.md has the mathematics.
#pragma once

#include "include/kernels.h"
#include "include/op.h"
#include "ops/moe-router/expert-ids.h"

namespace trilithon::moe_permute {

struct Plan {
  static constexpr const char* op = "moe-permute";
  static constexpr const char* name = "moe-permute.plan";
  static constexpr const char* summary =
      "Row of each (token, slot) when all are sorted by expert, in the order of tokens and slots within one; first row of each expert.";

  TensorView ids, slot_row, offsets;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("ids", ids, moe_router::id_types, "[tokens, top_k]", maybe_empty);
    v.output("slot_row", slot_row, only(DType::i32), "[tokens, top_k]", maybe_empty);
    v.output("offsets", offsets, only(DType::i32), "[experts + 1]");
  }
};

struct Forward {
  static constexpr const char* op = "moe-permute";
  static constexpr const char* name = "moe-permute.forward";
  static constexpr const char* summary = "y[slot_row[t, j]] = x[t] for every slot j.";

  TensorView x, slot_row, y;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "[tokens, width]", strided_rows | maybe_empty);
    v.input("slot_row", slot_row, only(DType::i32), "[tokens, top_k]", maybe_empty);
    v.output("y", y, floats, "[tokens * top_k, width]", strided_rows | maybe_empty);
  }
};

struct Backward {
  static constexpr const char* op = "moe-permute";
  static constexpr const char* name = "moe-permute.backward";
  static constexpr const char* summary = "Gradient of x: sum of the rows of d_y of each token, in the order of its slots.";

  TensorView d_y, slot_row, d_x;
  bool accumulate = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_y", d_y, floats, "[rows, width]", strided_rows | maybe_empty);
    v.input("slot_row", slot_row, only(DType::i32), "[tokens, top_k]", maybe_empty);
    v.inout("d_x", d_x, floats, "[tokens, width]", strided_rows | maybe_empty);
    v.flag("accumulate", accumulate);
  }
};

Status run(const Plan& args, Runtime& runtime);
Status run(const Forward& args, Runtime& runtime);
Status run(const Backward& args, Runtime& runtime);

void plan_reference(const Plan& args);
template <typename T>
void forward_reference(const Forward& args);
template <typename T>
void backward_reference(const Backward& args);

struct ForwardParams {
  const float* x;
  const int32_t* slot_row;
  float* y;
  int64_t x_stride, y_stride, top_k, width;
};

struct BackwardParams {
  const float* d_y;
  const int32_t* slot_row;
  float* d_x;
  int64_t d_y_stride, d_x_stride, top_k, width;
  bool accumulate;
};

struct Kernels {
  void (*forward)(const ForwardParams& params, int64_t token_begin, int64_t token_end);
  void (*backward)(const BackwardParams& params, int64_t token_begin, int64_t token_end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::moe_permute
