#pragma once

#include "harness/execute.h"

namespace trilithon::swiglu {

inline void add_cases(CaseList& cases) {
  struct Size {
    int64_t tokens, width;
  };
  for (const Size s : {Size{1, 1}, {3, 15}, {5, 64}, {4, 83}, {2, 1030}}) {
    const std::string size = size_label({s.tokens, s.width});
    cases.add("swiglu.forward", size)
        .input("gate", {s.tokens, s.width}, Fill::normal(0, 3))
        .input("up", {s.tokens, s.width})
        .output("y", {s.tokens, s.width})
        .rows({"gate", "up", "y"})
        .in_place("y", "gate")
        .tolerance(3e-7)
        .gradient("swiglu.backward", {"gate", "up"});
    cases.add("swiglu.backward", size)
        .input("d_y", {s.tokens, s.width})
        .input("gate", {s.tokens, s.width}, Fill::normal(0, 3))
        .input("up", {s.tokens, s.width})
        .output("d_gate", {s.tokens, s.width})
        .output("d_up", {s.tokens, s.width})
        .rows({"d_y", "gate", "up", "d_gate", "d_up"})
        .in_place("d_gate", "gate")
        .in_place("d_up", "up")
        .tolerance(1e-6);
    cases.add("swiglu.fused-forward", size)
        .input("gate_up", {s.tokens, 2 * s.width}, Fill::normal(0, 2))
        .output("y", {s.tokens, s.width})
        .rows({"gate_up", "y"})
        .tolerance(3e-7)
        .gradient("swiglu.fused-backward", {"gate_up"})
        .property("equals two matrices", [s](const PropertyContext& context) -> std::string {
          const Outcome fused = context.run(context.data);
          CaseData apart = context.data;
          apart.tensors.clear();
          apart.values.clear();
          for (const char* name : {"gate", "up", "y"}) apart.tensors.push_back({name, {s.tokens, s.width}, DType::f32, {}});
          const std::vector<double>& both = context.data.values.at("gate_up");
          for (int64_t t = 0; t < s.tokens; ++t) {
            const auto row = both.begin() + t * 2 * s.width;
            apart.values["gate"].insert(apart.values["gate"].end(), row, row + s.width);
            apart.values["up"].insert(apart.values["up"].end(), row + s.width, row + 2 * s.width);
          }
          return context.run("swiglu.forward", apart).values("y") == fused.values("y") ? "" : "y differs";
        });
    cases.add("swiglu.fused-backward", size)
        .input("d_y", {s.tokens, s.width})
        .input("gate_up", {s.tokens, 2 * s.width}, Fill::normal(0, 2))
        .output("d_gate_up", {s.tokens, 2 * s.width})
        .rows({"d_y", "gate_up", "d_gate_up"})
        .in_place("d_gate_up", "gate_up")
        .tolerance(1e-6);
  }
  cases.add("swiglu.forward", "strided")
      .input("gate", {6, 40})
      .pitch("gate", 80)
      .input("up", {6, 40})
      .pitch("up", 72)
      .output("y", {6, 40})
      .pitch("y", 50)
      .rows({"gate", "up", "y"})
      .tolerance(3e-7);
  // An expert without tokens.
  cases.add("swiglu.forward", "no rows").input("gate", {0, 24}).input("up", {0, 24}).output("y", {0, 24}).tolerance(3e-7);
  cases.add("swiglu.fused-backward", "no rows")
      .input("d_y", {0, 24})
      .input("gate_up", {0, 48})
      .output("d_gate_up", {0, 48})
      .tolerance(1e-6);
  cases.add("swiglu.forward", "special values")
      .input("gate", {8, 33}, Fill::special())
      .input("up", {8, 33}, Fill::special())
      .output("y", {8, 33})
      .rows({"gate", "up", "y"})
      .tolerance(3e-7)
      .in_float();
  cases.add("swiglu.fused-forward", "refused columns")
      .input("gate_up", {2, 6})
      .output("y", {2, 3})
      .tolerance(3e-7)
      .property("gate_up is not twice as wide", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        data.tensor("y").shape[1] = 4;
        const std::string text = context.refusal(data);
        return text == "swiglu.fused-forward: gate_up: expected 8 columns, twice as many as y has, given 6" ? "" : text;
      });

  const int64_t tokens = 2048, width = 3072;
  const double bytes = 4.0 * tokens * width;
  cases.add("swiglu.fused-forward", size_label({tokens, width}))
      .input("gate_up", {tokens, 2 * width})
      .output("y", {tokens, width})
      .bench(0, 3 * bytes);
  cases.add("swiglu.fused-backward", size_label({tokens, width}))
      .input("d_y", {tokens, width})
      .input("gate_up", {tokens, 2 * width})
      .output("d_gate_up", {tokens, 2 * width})
      .bench(0, 5 * bytes);
}

}  // namespace trilithon::swiglu
