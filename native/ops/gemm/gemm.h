// Matrix products of a linear layer: y = x · Wᵀ + bias and its gradients. README.md has the mathematics and the packed layout.
#pragma once

#include "include/kernels.h"
#include "include/op.h"
#include "isa/gemm-plan.h"

namespace trilithon::gemm {

struct Forward {
  static constexpr const char* op = "gemm";
  static constexpr const char* name = "gemm.forward";
  static constexpr const char* summary =
      "y = x * transposed(weight) + bias, or y + that when accumulate is set; weight as it is or packed.";

  TensorView x, weight, packed, bias, y;
  bool accumulate = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "[tokens, k]", strided_rows);
    v.input("weight", weight, floats, "[n, k]", optional | strided_rows);
    v.input("packed", packed, floats, "[panels of n, k, 32]", optional);
    v.input("bias", bias, floats, "[n]", optional);
    v.inout("y", y, floats, "[tokens, n]", strided_rows);
    v.flag("accumulate", accumulate);
  }
};

struct BackwardX {
  static constexpr const char* op = "gemm";
  static constexpr const char* name = "gemm.backward-x";
  static constexpr const char* summary =
      "d_x = d_y * weight, or d_x + that when accumulate is set; weight as it is or packed for backward.";

  TensorView d_y, weight, packed, d_x;
  bool accumulate = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_y", d_y, floats, "[tokens, n]", strided_rows);
    v.input("weight", weight, floats, "[n, k]", optional | strided_rows);
    v.input("packed", packed, floats, "[panels of k, n, 32]", optional);
    v.inout("d_x", d_x, floats, "[tokens, k]", strided_rows);
    v.flag("accumulate", accumulate);
  }
};

struct BackwardWeight {
  static constexpr const char* op = "gemm";
  static constexpr const char* name = "gemm.backward-weight";
  static constexpr const char* summary =
      "d_weight = transposed(d_y) * x and d_bias = sum of d_y over tokens, or added to them when accumulate is set.";

  TensorView d_y, x, d_weight, d_bias;
  bool accumulate = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_y", d_y, floats, "[tokens, n]", strided_rows);
    v.input("x", x, floats, "[tokens, k]", strided_rows);
    v.inout("d_weight", d_weight, floats, "[n, k]", strided_rows);
    v.inout("d_bias", d_bias, floats, "[n]", optional);
    v.flag("accumulate", accumulate);
  }
};

struct Pack {
  static constexpr const char* op = "gemm";
  static constexpr const char* name = "gemm.pack";
  static constexpr const char* summary =
      "Lays a weight out in panels of 32 columns for gemm.forward, or for gemm.backward-x when backward is set.";

  TensorView weight, packed;
  bool backward = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("weight", weight, floats, "[n, k]", strided_rows);
    v.output("packed", packed, floats, "[panels of n, k, 32], or [panels of k, n, 32] for backward");
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

// Element (row, column) of a weight, or of the same weight in panels of `packed`, where columns are the lanes.
template <typename T>
T panel_element(const TensorView& packed, int64_t depth, int64_t column) {
  return packed.at<T>(column / 32, depth, column % 32);
}

struct PackParams {
  const float* weight;
  float* packed;
  int64_t weight_stride, n, k;
  bool backward;
};

struct SumParams {
  const float* rows;
  float* sums;
  int64_t stride, count;
  bool accumulate;
};

struct Kernels {
  void (*product)(const Product& product, const Block& block, float* scratch);
  void (*pack)(const PackParams& params, int64_t panel_begin, int64_t panel_end);
  void (*column_sums)(const SumParams& params, int64_t column_begin, int64_t column_end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::gemm
