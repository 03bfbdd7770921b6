#pragma once

#include "harness/case.h"

namespace trilithon::layer_norm {

inline void add_cases(CaseList& cases) {
  struct Size {
    int64_t tokens, width;
  };
  for (const Size s : {Size{1, 2}, {3, 15}, {5, 64}, {7, 83}, {2, 1030}, {9, 128}}) {
    // A bias in most cases: without it in one.
    const bool with_bias = s.width != 83;
    Case& forward = cases.add("layer-norm.forward", size_label({s.tokens, s.width}));
    forward.input("x", {s.tokens, s.width}, Fill::normal(0.7, 2)).input("weight", {s.width}, Fill::normal(1, 0.2));
    if (with_bias) forward.input("bias", {s.width});
    forward.output("y", {s.tokens, s.width})
        .output("mean", {s.tokens})
        .output("rstd", {s.tokens})
        .number("eps", 1e-6)
        .rows({"x", "y", "mean", "rstd"})
        .tolerance(2e-6);
    // Two numbers normalise to 1 and -1 whatever they are: their gradient is 0 but for eps.
    if (s.width > 2 && !with_bias) forward.gradient("layer-norm.backward", {"x", "weight"});
    if (s.width > 2 && with_bias) forward.gradient("layer-norm.backward", {"x", "weight", "bias"});

    Case& backward = cases.add("layer-norm.backward", size_label({s.tokens, s.width}));
    backward.input("d_y", {s.tokens, s.width})
        .input("x", {s.tokens, s.width})
        .input("weight", {s.width}, Fill::normal(1, 0.2))
        .input("mean", {s.tokens})
        .input("rstd", {s.tokens}, Fill::uniform(0.5, 2))
        .output("d_x", {s.tokens, s.width})
        .inout("d_weight", {s.width})
        .flag("accumulate", s.tokens % 2 == 1)
        .rows({"d_y", "x", "mean", "rstd", "d_x"})
        .tolerance(3e-6);
    if (with_bias) backward.inout("d_bias", {s.width}).accumulates("accumulate", {"d_weight", "d_bias"});
    if (!with_bias) backward.accumulates("accumulate", {"d_weight"});
  }
  cases.add("layer-norm.forward", "strided")
      .input("x", {6, 40})
      .pitch("x", 72)
      .input("weight", {40})
      .input("bias", {40})
      .output("y", {6, 40})
      .pitch("y", 50)
      .number("eps", 1e-6)
      .rows({"x", "y"})
      .tolerance(2e-6);
  // Infinities and NaN stay in their rows; a row of zeros has rstd = 1 / sqrt(eps).
  cases.add("layer-norm.forward", "special values")
      .input("x", {8, 33}, Fill::special())
      .input("weight", {33})
      .input("bias", {33})
      .output("y", {8, 33})
      .output("mean", {8})
      .output("rstd", {8})
      .number("eps", 1e-5)
      .rows({"x", "y", "mean", "rstd"})
      .tolerance(2e-6);

  const int64_t tokens = 8192, width = 128;
  cases.add("layer-norm.forward", size_label({tokens, width}))
      .input("x", {tokens, width})
      .input("weight", {width})
      .input("bias", {width})
      .output("y", {tokens, width})
      .output("mean", {tokens})
      .output("rstd", {tokens})
      .number("eps", 1e-6)
      .bench(0, 8.0 * tokens * width);
  cases.add("layer-norm.backward", size_label({tokens, width}))
      .input("d_y", {tokens, width})
      .input("x", {tokens, width})
      .input("weight", {width})
      .input("mean", {tokens})
      .input("rstd", {tokens}, Fill::uniform(0.5, 2))
      .output("d_x", {tokens, width})
      .inout("d_weight", {width})
      .inout("d_bias", {width})
      .flag("accumulate", true)
      .bench(0, 20.0 * tokens * width);
}

}  // namespace trilithon::layer_norm
