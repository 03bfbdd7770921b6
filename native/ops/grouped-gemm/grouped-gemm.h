// Linear layers of experts: each expert multiplies its own consecutive rows by its own weight. README.md has the mathematics.
#pragma once

#include "include/kernels.h"
#include "include/op.h"
#include "isa/gemm-plan.h"

namespace trilithon::grouped_gemm {

struct Forward {
  static constexpr const char* op = "grouped-gemm";
  static constexpr const char* name = "grouped-gemm.forward";
  static constexpr const char* summary =
      "Rows of x of each expert times its transposed weight, added to y when accumulate is set; weights as they are or packed.";

  TensorView x, weight, packed, expert_starts, y;
  bool accumulate = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "[rows, k]", strided_rows | maybe_empty);
    v.input("weight", weight, floats, "[experts, n, k]", optional);
    v.input("packed", packed, floats, "[experts, panels of n, k, 32]", optional);
    v.input("expert_starts", expert_starts, only(DType::i32), "[experts + 1]");
    v.inout("y", y, floats, "[rows, n]", strided_rows | maybe_empty);
    v.flag("accumulate", accumulate);
  }
};

struct BackwardX {
  static constexpr const char* op = "grouped-gemm";
  static constexpr const char* name = "grouped-gemm.backward-x";
  static constexpr const char* summary =
      "Rows of d_y of each expert times its weight, added to d_x when accumulate is set; weights as they are or packed for backward.";

  TensorView d_y, weight, packed, expert_starts, d_x;
  bool accumulate = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_y", d_y, floats, "[rows, n]", strided_rows | maybe_empty);
    v.input("weight", weight, floats, "[experts, n, k]", optional);
    v.input("packed", packed, floats, "[experts, panels of k, n, 32]", optional);
    v.input("expert_starts", expert_starts, only(DType::i32), "[experts + 1]");
    v.inout("d_x", d_x, floats, "[rows, k]", strided_rows | maybe_empty);
    v.flag("accumulate", accumulate);
  }
};

struct BackwardWeight {
  static constexpr const char* op = "grouped-gemm";
  static constexpr const char* name = "grouped-gemm.backward-weight";
  static constexpr const char* summary =
      "Transposed rows of d_y times rows of x of each expert, added to d_weight when accumulate is set; an expert without rows gets 0.";

  TensorView d_y, x, expert_starts, d_weight;
  bool accumulate = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_y", d_y, floats, "[rows, n]", strided_rows | maybe_empty);
    v.input("x", x, floats, "[rows, k]", strided_rows | maybe_empty);
    v.input("expert_starts", expert_starts, only(DType::i32), "[experts + 1]");
    v.inout("d_weight", d_weight, floats, "[experts, n, k]");
    v.flag("accumulate", accumulate);
  }
};

struct Pack {
  static constexpr const char* op = "grouped-gemm";
  static constexpr const char* name = "grouped-gemm.pack";
  static constexpr const char* summary =
      "Lays the weight of each expert out in panels of 32 columns for the forward product, or for backward-x when backward is set.";

  TensorView weight, packed;
  bool backward = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("weight", weight, floats, "[experts, n, k]");
    v.output("packed", packed, floats, "[experts, panels of n, k, 32], or [experts, panels of k, n, 32] for backward");
    v.flag("backward", backward);
  }
};

Status run(const Forward& args, Runtime& runtime);
Status run(const BackwardX& args, Runtime& runtime);
Status run(const BackwardWeight& args, Runtime& runtime);
Status run(const Pack& args, Runtime& runtime);

template <typename T>
void forward_reference(const Forward& args);
template <typename T>
void backward_x_reference(const BackwardX& args);
template <typename T>
void backward_weight_reference(const BackwardWeight& args);
template <typename T>
void pack_reference(const Pack& args);

struct PackParams {
  const float* weight;
  float* packed;
  int64_t n, k;
  bool backward;
};

struct Kernels {
  void (*product)(const Product& product, const Block& block, float* scratch);
  // Panels are counted through all experts.
  void (*pack)(const PackParams& params, int64_t panel_begin, int64_t panel_end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::grouped_gemm
