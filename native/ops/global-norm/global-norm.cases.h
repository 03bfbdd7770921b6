#pragma once

#include <cmath>
#include <limits>

#include "harness/execute.h"

namespace trilithon::global_norm {

inline void add_cases(CaseList& cases) {
  for (const int64_t elements : {0, 1, 63, 1037, 16384, 16385, 50000}) {
    cases.add("global-norm.square-sum", size_label({elements}))
        .input("x", {elements}, Fill::normal(0.1, 2))
        .inout("sums", {3, 2}, Fill::normal(), DType::f64)
        .integer("slot", 1)
        .tolerance(2e-6);
  }
  cases.add("global-norm.square-sum", "special values")
      .input("x", {16, 33}, Fill::special())
      .inout("sums", {1, 2}, Fill::constant(0), DType::f64)
      .integer("slot", 0)
      .tolerance(2e-6)
      .property("counts what is not finite",
                [](const PropertyContext& context) -> std::string {
                  const double count = context.run(context.data)["sums"].value(1);
                  return count == 6 ? "" : std::to_string(count) + " of 6 were counted";
                })
      .property("refused slot", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        data.scalars["slot"] = 1;
        const std::string text = context.refusal(data);
        return text == "global-norm.square-sum: slot: expected 0 to 0, given 1" ? "" : text;
      });
  for (const double max_norm : {0.0, 1.0, 100.0}) {
    cases.add("global-norm.finish", "max_norm " + std::to_string(max_norm))
        .input("sums", {5, 2}, Fill::uniform(0, 9), DType::f64)
        .output("result", {3}, DType::f64)
        .number("max_norm", max_norm)
        .property("clips to max_norm", [max_norm](const PropertyContext& context) -> std::string {
          const Outcome outcome = context.run(context.data);
          const double norm = outcome["result"].value(0), factor = outcome["result"].value(1);
          const double want = max_norm == 0 || norm <= max_norm ? 1 : max_norm / norm;
          return std::fabs(factor - want) < 1e-5 ? "" : "norm " + std::to_string(norm) + " has factor " + std::to_string(factor);
        });
  }
  cases.add("global-norm.square-sum", size_label({4 << 20}))
      .input("x", {4 << 20})
      .inout("sums", {1, 2}, Fill::constant(0), DType::f64)
      .integer("slot", 0)
      .bench(0, 16.0 * (1 << 20));
}

}  // namespace trilithon::global_norm
