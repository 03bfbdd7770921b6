// Elementary functions element by element: the polynomials of isa/math.h as ops. README.md has ranges and errors.
#pragma once

#include "include/kernels.h"
#include "include/op.h"

namespace trilithon::elementary {

enum class Function : int { exp, log, sin, cos, rsqrt, sigmoid, silu };

inline constexpr int function_count = 7;
inline constexpr const char* entry_names[function_count] = {"elementary.exp",   "elementary.log",     "elementary.sin", "elementary.cos",
                                                            "elementary.rsqrt", "elementary.sigmoid", "elementary.silu"};
inline constexpr const char* summaries[function_count] = {
    "y = e^x.",         "y = natural logarithm of x.", "y = sin(x), x in radians.", "y = cos(x), x in radians.",
    "y = 1 / sqrt(x).", "y = 1 / (1 + e^-x).",         "y = x / (1 + e^-x)."};

template <Function function>
struct Map {
  static constexpr const char* op = "elementary";
  static constexpr const char* name = entry_names[static_cast<int>(function)];
  static constexpr const char* summary = summaries[static_cast<int>(function)];

  TensorView x, y;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "[elements]", may_alias);
    v.output("y", y, floats, "[elements]", may_alias);
  }
};

Status run_function(Function function, const char* name, const TensorView& x, const TensorView& y, Runtime& runtime);

template <Function function>
Status run(const Map<function>& args, Runtime& runtime) {
  return run_function(function, Map<function>::name, args.x, args.y, runtime);
}

template <typename T>
void map_reference(Function function, const TensorView& x, const TensorView& y);

struct Kernels {
  void (*map)(Function function, const float* x, float* y, int64_t begin, int64_t end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::elementary
