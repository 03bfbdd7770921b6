#pragma once

#include <cmath>
#include <limits>

#include "harness/execute.h"

namespace trilithon::optimizers {

// Steps on f(p) = (p - 3)^2 / 2 from 0 bring every element near 3.
inline std::string check_descent(const PropertyContext& context) {
  CaseData data = context.data;
  const size_t count = data.values.at("param").size();
  for (auto& [name, values] : data.values) values.assign(count, 0);
  const bool counts_steps = data.scalars.contains("step");
  for (int step = 1; step <= 400; ++step) {
    for (size_t i = 0; i < count; ++i) data.values["gradient"][i] = data.values["param"][i] - 3;
    if (counts_steps) data.scalars["step"] = step;
    const Outcome outcome = context.run(data);
    for (auto& [name, values] : data.values) {
      if (name != "gradient") values = outcome.values(name);
    }
  }
  for (const double param : data.values["param"]) {
    if (std::fabs(param - 3) > 0.1) return "after 400 steps a parameter is " + std::to_string(param) + ", not 3";
  }
  return "";
}

inline Case& add_adamw(CaseList& cases, const std::string& label, int64_t elements, int64_t step) {
  return cases.add("optimizers.adamw", label)
      .inout("param", {elements})
      .input("gradient", {elements})
      .inout("first_moment", {elements}, Fill::normal(0, 0.3))
      .inout("second_moment", {elements}, Fill::uniform(0, 0.5))
      .number("learning_rate", 1e-2)
      .number("beta1", 0.9)
      .number("beta2", 0.999)
      .number("epsilon", 1e-8)
      .number("weight_decay", 0.01)
      .number("gradient_scale", step % 2 == 0 ? 1 : 0.37)
      .integer("step", step)
      .rows({"param", "gradient", "first_moment", "second_moment"});
}

inline Case& add_sgd(CaseList& cases, const std::string& label, int64_t elements, double momentum, bool nesterov) {
  Case& item = cases.add("optimizers.sgd", label);
  item.inout("param", {elements}).input("gradient", {elements});
  if (momentum != 0) item.inout("velocity", {elements}).rows({"param", "gradient", "velocity"});
  if (momentum == 0) item.rows({"param", "gradient"});
  return item.number("learning_rate", 0.02)
      .number("momentum", momentum)
      .number("weight_decay", 0)
      .number("gradient_scale", 1)
      .flag("nesterov", nesterov);
}

inline void add_cases(CaseList& cases) {
  for (const int64_t elements : {1, 15, 64, 1037}) {
    for (const int64_t step : {1, 2, 5000}) {
      add_adamw(cases, size_label({elements}) + " step " + std::to_string(step), elements, step).tolerance(1e-6);
    }
    const std::string size = size_label({elements});
    add_sgd(cases, size, elements, 0, false).tolerance(1e-6).number("weight_decay", 0.1).number("gradient_scale", 0.5);
    add_sgd(cases, size + " momentum", elements, 0.9, false).tolerance(1e-6).number("weight_decay", 0.1);
    add_sgd(cases, size + " nesterov", elements, 0.9, true).tolerance(1e-6).number("gradient_scale", 0.5);
    cases.add("optimizers.sign-sgd", size)
        .inout("param", {elements})
        .input("gradient", {elements}, Fill::integers(-2, 3))
        .number("learning_rate", 0.01)
        .number("weight_decay", 0.1)
        .rows({"param", "gradient"})
        .tolerance(1e-6);
  }
  add_adamw(cases, "descent", 5, 1)
      .tolerance(1e-6)
      .number("learning_rate", 0.1)
      .number("weight_decay", 0)
      .number("gradient_scale", 1)
      .property("descent", check_descent);
  add_sgd(cases, "descent", 5, 0.9, true).tolerance(1e-6).property("descent", check_descent);
  cases.add("optimizers.sign-sgd", "descent")
      .inout("param", {5})
      .input("gradient", {5})
      .number("learning_rate", 0.02)
      .number("weight_decay", 0)
      .tolerance(1e-6)
      .property("descent", check_descent);
  // A shard without elements, and matrices.
  cases.add("optimizers.sign-sgd", "nothing")
      .inout("param", {0, 4})
      .input("gradient", {0, 4})
      .number("learning_rate", 1)
      .number("weight_decay", 0);
  cases.add("optimizers.sign-sgd", "special values")
      .inout("param", {8, 33})
      .input("gradient", {8, 33}, Fill::special())
      .number("learning_rate", 0.5)
      .number("weight_decay", 0)
      .tolerance(1e-6);
  cases.add("optimizers.sgd", "refusals")
      .inout("param", {4})
      .input("gradient", {4})
      .number("learning_rate", 0.1)
      .number("momentum", 0)
      .number("weight_decay", 0)
      .number("gradient_scale", 1)
      .flag("nesterov", false)
      .tolerance(1e-6)
      .property("numbers", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        data.scalars["momentum"] = 0.9;
        if (const std::string text = context.refusal(data);
            text != "optimizers.sgd: velocity: expected a tensor, because momentum is not 0, given nothing")
          return text;
        data = context.data;
        data.scalars["nesterov"] = 1;
        if (const std::string text = context.refusal(data);
            text != "optimizers.sgd: momentum: expected a number above 0, because nesterov is set, given 0")
          return text;
        data = context.data;
        data.scalars["learning_rate"] = -1;
        if (const std::string text = context.refusal(data); text != "optimizers.sgd: learning_rate: expected a number >= 0, given -1")
          return text;
        data = context.data;
        data.tensor("gradient").shape = {2, 2};
        const std::string text = context.refusal(data);
        return text == "optimizers.sgd: gradient: expected shape [4] as in param, given [2, 2]" ? "" : text;
      });

  const int64_t elements = 4 << 20;
  add_adamw(cases, size_label({elements}), elements, 100).bench(0, 28.0 * elements);
  add_sgd(cases, size_label({elements}) + " nesterov", elements, 0.9, true).bench(0, 20.0 * elements);
}

}  // namespace trilithon::optimizers
