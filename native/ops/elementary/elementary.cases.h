#pragma once

#include <limits>

#include "harness/case.h"
#include "ops/elementary/elementary.h"

namespace trilithon::elementary {

inline void add_cases(CaseList& cases) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  struct Range {
    const char* entry;
    const char* label;
    double low, high, tolerance;
  };
  // Relative errors in units of 2^-24 are about 1.7e7 times these.
  for (const Range r : {Range{"elementary.exp", "results in range", -103.9, 88.7, 1.3e-7},
                        {"elementary.exp", "near 0", -1, 1, 1.2e-7},
                        {"elementary.log", "0 to 1e-30", 1e-45, 1e-30, 1.2e-7},
                        {"elementary.log", "0 to 4", 1e-6, 4, 1.2e-7},
                        {"elementary.log", "large", 4, 3e38, 1.2e-7},
                        {"elementary.rsqrt", "0 to 100", 1e-6, 100, 1.2e-7},
                        {"elementary.sigmoid", "-80 to 80", -80, 80, 2.5e-7},
                        {"elementary.silu", "-80 to 80", -80, 80, 2.5e-7}}) {
    cases.add(r.entry, r.label)
        .input("x", {4099}, Fill::uniform(r.low, r.high))
        .output("y", {4099})
        .rows({"x", "y"})
        .in_place("y", "x")
        .relative_tolerance(r.tolerance);
  }
  for (const char* entry : {"elementary.sin", "elementary.cos"}) {
    cases.add(entry, "-pi to pi").input("x", {4099}, Fill::uniform(-3.15, 3.15)).output("y", {4099}).rows({"x", "y"}).tolerance(1.2e-7);
    cases.add(entry, "positions").input("x", {4099}, Fill::uniform(-1048576, 1048576)).output("y", {4099}).tolerance(2e-7);
  }
  cases.add("elementary.exp", "borders")
      .input("x", {12}, Fill::values({0, -0.0, infinity, -infinity, nan, 88.72, 88.73, 89, 1e30, -103, -104.5, -1e30}))
      .output("y", {12})
      .relative_tolerance(1.3e-7)
      .in_float();
  cases.add("elementary.log", "borders")
      .input("x", {9}, Fill::values({0, -0.0, infinity, -infinity, nan, -1, 1, 1.1754944e-38, 1e-45}))
      .output("y", {9})
      .relative_tolerance(1.3e-7);
  cases.add("elementary.sin", "borders").input("x", {4}, Fill::values({0, infinity, -infinity, nan})).output("y", {4});
  cases.add("elementary.cos", "borders").input("x", {4}, Fill::values({0, infinity, -infinity, nan})).output("y", {4});
  cases.add("elementary.rsqrt", "borders").input("x", {5}, Fill::values({0, infinity, nan, -1, 4})).output("y", {5});
  cases.add("elementary.sigmoid", "borders")
      .input("x", {6}, Fill::values({0, infinity, -infinity, nan, 200, -200}))
      .output("y", {6})
      .in_float();
  cases.add("elementary.silu", "borders").input("x", {4}, Fill::values({0, infinity, nan, 200})).output("y", {4});

  for (const char* entry : entry_names) {
    cases.add(entry, "1048576").input("x", {1048576}, Fill::uniform(0.1, 4)).output("y", {1048576}).bench(0, 8.0 * 1048576);
  }
}

}  // namespace trilithon::elementary
