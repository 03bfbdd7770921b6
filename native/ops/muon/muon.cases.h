#pragma once

#include <cmath>

#include "harness/execute.h"

namespace trilithon::muon {

// With param 0 and a rate of 1, param is the negative of the orthogonalised direction: its smaller Gram matrix is near 1.
inline std::string check_orthogonal(const PropertyContext& context) {
  CaseData data = context.data;
  data.values["param"].assign(data.values["param"].size(), 0);
  data.values["velocity"] = data.values["param"];
  data.scalars["update_rate"] = 1;
  const Outcome outcome = context.run(data);
  const TensorView& view = outcome["param"].view();
  const int64_t rows = view.shape[view.rank - 2], columns = view.shape[view.rank - 1], side = std::min(rows, columns);
  const auto element = [&](int64_t i, int64_t k) { return outcome["param"].value(rows <= columns ? i * columns + k : k * columns + i); };
  for (int64_t i = 0; i < side; ++i) {
    for (int64_t j = 0; j < side; ++j) {
      double dot = 0;
      for (int64_t k = 0; k < std::max(rows, columns); ++k) dot += element(i, k) * element(j, k);
      if (std::fabs(dot - (i == j ? 1 : 0)) > 0.35)
        return "rows " + std::to_string(i) + " and " + std::to_string(j) + " have a product of " + std::to_string(dot);
    }
  }
  return "";
}

// The step of a transposed matrix is the transposed step.
inline std::string check_transposed(const PropertyContext& context) {
  const Outcome plain = context.run(context.data);
  const TensorView& view = plain["param"].view();
  const int64_t rows = view.shape[0], columns = view.shape[1];
  CaseData turned = context.data;
  for (const char* name : {"param", "gradient", "velocity"}) {
    turned.tensor(name).shape = {columns, rows};
    const std::vector<double> values = turned.values[name];
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c)
        turned.values[name][static_cast<size_t>(c * rows + r)] = values[static_cast<size_t>(r * columns + c)];
    }
  }
  const Outcome outcome = context.run(turned);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const double a = plain["param"].value(r * columns + c), b = outcome["param"].value(c * rows + r);
      if (std::fabs(a - b) > 2e-4)
        return "param" + plain["param"].coordinate(r * columns + c) + " is " + std::to_string(a) + ", transposed " + std::to_string(b);
    }
  }
  return "";
}

inline Case& add_step(CaseList& cases, const std::vector<int64_t>& shape, bool nesterov) {
  std::string label = nesterov ? "nesterov " : "";
  for (const int64_t dim : shape) label += (label.empty() || label.back() == ' ' ? "" : "x") + std::to_string(dim);
  return cases.add("muon.step", label)
      .inout("param", shape)
      .input("gradient", shape)
      .inout("velocity", shape, Fill::normal(0, 0.5))
      .number("learning_rate", 0.1)
      .number("update_rate", 0.5)
      .number("momentum", 0.95)
      .number("weight_decay", 0.01)
      .number("epsilon", 1e-8)
      .number("gradient_scale", 0.8)
      .flag("nesterov", nesterov);
}

inline void add_cases(CaseList& cases) {
  add_step(cases, {1, 1}, false).tolerance(2e-5);
  // Square random matrices have singular values near 0, which the iterations do not bring up to 1: no test of orthogonality.
  add_step(cases, {9, 9}, false).tolerance(1e-5).property("transposed", check_transposed);
  for (const bool nesterov : {false, true}) {
    add_step(cases, {5, 16}, nesterov).tolerance(1e-5).property("orthogonal", check_orthogonal).property("transposed", check_transposed);
    add_step(cases, {83, 20}, nesterov).tolerance(1e-5).property("orthogonal", check_orthogonal);
    add_step(cases, {40, 200}, nesterov).tolerance(1e-5).property("orthogonal", check_orthogonal);
  }
  // Experts: each matrix alone.
  add_step(cases, {3, 12, 30}, false).tolerance(1e-5).rows({"param", "gradient", "velocity"});
  add_step(cases, {0, 12, 30}, false).tolerance(1e-5);
  cases.add("muon.step", "zeros and refusals")
      .inout("param", {4, 6})
      .input("gradient", {4, 6}, Fill::constant(0))
      .inout("velocity", {4, 6}, Fill::constant(0))
      .number("learning_rate", 0.1)
      .number("update_rate", 0.5)
      .number("momentum", 0.95)
      .number("weight_decay", 0)
      .number("epsilon", 1e-8)
      .number("gradient_scale", 1)
      .flag("nesterov", true)
      .tolerance(1e-6)
      .property("a matrix is wanted", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        for (const char* name : {"param", "gradient", "velocity"}) data.tensor(name).shape = {24};
        if (const std::string text = context.refusal(data); text != "muon.step: param: expected a matrix, or several, given [24]")
          return text;
        data = context.data;
        data.scalars["epsilon"] = 0;
        const std::string text = context.refusal(data);
        return text == "muon.step: epsilon: expected a number above 0, so that a matrix of zeros has a norm, given 0" ? "" : text;
      });
  const int64_t rows = 768, columns = 2048;
  add_step(cases, {rows, columns}, true).bench(5 * (4.0 * rows * rows * columns + 2.0 * rows * rows * rows), 0);
}

}  // namespace trilithon::muon
