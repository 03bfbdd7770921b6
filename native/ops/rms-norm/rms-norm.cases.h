#pragma once

#include "harness/case.h"

namespace trilithon::rms_norm {

inline void add_cases(CaseList& cases) {
  struct Size {
    int64_t tokens, width;
  };
  for (const Size s : {Size{1, 1}, {3, 15}, {5, 64}, {7, 83}, {2, 1030}, {9, 576}}) {
    cases.add("rms-norm.forward", size_label({s.tokens, s.width}))
        .input("x", {s.tokens, s.width})
        .input("weight", {s.width}, Fill::normal(1, 0.2))
        .output("y", {s.tokens, s.width})
        .output("rstd", {s.tokens})
        .number("eps", 1e-5)
        .rows({"x", "y", "rstd"})
        .tolerance(1e-6)
        .gradient("rms-norm.backward", {"x", "weight"});
    cases.add("rms-norm.backward", size_label({s.tokens, s.width}))
        .input("d_y", {s.tokens, s.width})
        .input("x", {s.tokens, s.width})
        .input("weight", {s.width}, Fill::normal(1, 0.2))
        .input("rstd", {s.tokens}, Fill::uniform(0.5, 2))
        .output("d_x", {s.tokens, s.width})
        .inout("d_weight", {s.width})
        .flag("accumulate", s.tokens % 2 == 1)
        .rows({"d_y", "x", "rstd", "d_x"})
        .accumulates("accumulate", {"d_weight"})
        .tolerance(2e-6);
  }
  // Columns of a wider matrix, and no rstd.
  cases.add("rms-norm.forward", "strided")
      .input("x", {6, 40})
      .pitch("x", 72)
      .input("weight", {40})
      .output("y", {6, 40})
      .pitch("y", 50)
      .number("eps", 1e-6)
      .rows({"x", "y"})
      .tolerance(1e-6);
  // A row of zeros, infinities and NaN must not touch its neighbours.
  cases.add("rms-norm.forward", "special values")
      .input("x", {8, 33}, Fill::special())
      .input("weight", {33})
      .output("y", {8, 33})
      .output("rstd", {8})
      .number("eps", 1e-5)
      .rows({"x", "y", "rstd"})
      .tolerance(1e-6);

  const int64_t tokens = 2048, width = 2048;
  const double bytes = 4.0 * tokens * width;
  cases.add("rms-norm.forward", size_label({tokens, width}))
      .input("x", {tokens, width})
      .input("weight", {width})
      .output("y", {tokens, width})
      .output("rstd", {tokens})
      .number("eps", 1e-5)
      .bench(0, 2 * bytes);
  cases.add("rms-norm.backward", size_label({tokens, width}))
      .input("d_y", {tokens, width})
      .input("x", {tokens, width})
      .input("weight", {width})
      .input("rstd", {tokens}, Fill::uniform(0.5, 2))
      .output("d_x", {tokens, width})
      .inout("d_weight", {width})
      .flag("accumulate", true)
      .bench(0, 5 * bytes);
}

}  // namespace trilithon::rms_norm
