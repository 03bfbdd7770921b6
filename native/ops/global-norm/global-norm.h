// The norm of many gradients together, whether all their elements are finite, and the factor that clips them. README.md has
// the mathematics.
#pragma once

#include "include/kernels.h"
#include "include/op.h"

namespace trilithon::global_norm {

// Elements that one sum in float covers: a constant of the op.
inline constexpr int64_t block_elements = 16384;

struct SquareSum {
  static constexpr const char* op = "global-norm";
  static constexpr const char* name = "global-norm.square-sum";
  static constexpr const char* summary = "sums[slot] = (sum of squares of x, number of its elements that are NaN or infinite).";

  TensorView x, sums;
  int64_t slot = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "any shape", maybe_empty);
    v.inout("sums", sums, only(DType::f64), "[slots, 2]");
    v.integer("slot", slot);
  }
};

struct Finish {
  static constexpr const char* op = "global-norm";
  static constexpr const char* name = "global-norm.finish";
  static constexpr const char* summary =
      "result = (norm of all slots, factor that brings it to max_norm or 1, number of elements that are NaN or infinite).";

  TensorView sums, result;
  double max_norm = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("sums", sums, only(DType::f64), "[slots, 2]");
    v.output("result", result, only(DType::f64), "[3]");
    v.number("max_norm", max_norm);
  }
};

Status run(const SquareSum& args, Runtime& runtime);
Status run(const Finish& args, Runtime& runtime);

template <typename T>
void square_sum_reference(const SquareSum& args);
void finish_reference(const Finish& args);

// Sum of squares and elements that are not finite, of one block.
struct BlockSum {
  float squares;
  float not_finite;
};

struct Kernels {
  BlockSum (*block)(const float* x, int64_t count);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::global_norm
