#pragma once

#include <numeric>

#include "harness/execute.h"

namespace trilithon::moe_combine {

// A permutation of all rows.
inline Fill permutation() {
  return {[](std::vector<double>& values, const std::vector<int64_t>&, Random& random) {
    std::iota(values.begin(), values.end(), 0.0);
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }};
}

// One token alone, with its rows alone, gives the gradients that it has among others.
inline std::string check_token_alone(const PropertyContext& context) {
  const Outcome all = context.run(context.data);
  const int64_t tokens = all["slot_row"].view().shape[0], top_k = all["slot_row"].view().shape[1], width = all["x"].view().shape[1];
  for (int64_t t = 0; t < tokens; ++t) {
    CaseData one = context.data.rows({"d_y", "slot_row", "weights", "d_weights"}, t, t + 1);
    one.tensor("x").shape[0] = one.tensor("d_x").shape[0] = top_k;
    std::vector<double>& x = one.values["x"];
    x.clear();
    for (int64_t slot = 0; slot < top_k; ++slot) {
      const auto row =
          context.data.values.at("x").begin() + static_cast<int64_t>(one.values["slot_row"][static_cast<size_t>(slot)]) * width;
      x.insert(x.end(), row, row + width);
      one.values["slot_row"][static_cast<size_t>(slot)] = static_cast<double>(slot);
    }
    const Outcome alone = context.run(one);
    for (int64_t i = 0; i < top_k * width; ++i) {
      const int64_t row = static_cast<int64_t>(all["slot_row"].value(t * top_k + i / width));
      if (alone["d_x"].bits(i) != all["d_x"].bits(row * width + i % width)) return "token " + std::to_string(t) + " alone has another d_x";
    }
    for (int64_t slot = 0; slot < top_k; ++slot) {
      if (alone["d_weights"].bits(slot) != all["d_weights"].bits(t * top_k + slot))
        return "token " + std::to_string(t) + " alone has other d_weights";
    }
  }
  return "";
}

inline void add_cases(CaseList& cases) {
  struct Size {
    int64_t tokens, top_k, width;
  };
  for (const Size s : {Size{1, 1, 1}, {5, 2, 15}, {11, 3, 64}, {4, 8, 83}, {3, 4, 1030}, {0, 2, 24}}) {
    const std::string size = size_label({s.tokens, s.top_k, s.width});
    Case& forward = cases.add("moe-combine.forward", size);
    forward.input("x", {s.tokens * s.top_k, s.width})
        .input("slot_row", {s.tokens, s.top_k}, permutation(), DType::i32)
        .input("weights", {s.tokens, s.top_k}, Fill::uniform(0, 1))
        .inout("y", {s.tokens, s.width})
        .flag("accumulate", s.top_k % 2 == 1)
        .tolerance(1e-6);
    if (s.tokens > 0) forward.rows({"slot_row", "weights", "y"}).gradient("moe-combine.backward", {"x", "weights"});
    Case& backward = cases.add("moe-combine.backward", size);
    backward.input("d_y", {s.tokens, s.width})
        .input("x", {s.tokens * s.top_k, s.width})
        .input("slot_row", {s.tokens, s.top_k}, permutation(), DType::i32)
        .input("weights", {s.tokens, s.top_k}, Fill::uniform(0, 1))
        .output("d_x", {s.tokens * s.top_k, s.width})
        .output("d_weights", {s.tokens, s.top_k})
        .in_place("d_x", "x")
        .tolerance(4e-6)
        .property("a token alone", check_token_alone);
  }
  cases.add("moe-combine.forward", "strided, special values, shared rows")
      .input("x", {8, 20}, Fill::special())
      .pitch("x", 33)
      .input("slot_row", {6, 3}, Fill::integers(0, 8), DType::i32)
      .input("weights", {6, 3}, Fill::uniform(0.1, 1))
      .inout("y", {6, 20})
      .pitch("y", 24)
      .flag("accumulate", false)
      .rows({"slot_row", "weights", "y"})
      .tolerance(1e-6);
  cases.add("moe-combine.backward", "refused rows")
      .input("d_y", {2, 4})
      .input("x", {4, 4})
      .input("slot_row", {2, 2}, permutation(), DType::i32)
      .input("weights", {2, 2})
      .output("d_x", {4, 4})
      .output("d_weights", {2, 2})
      .tolerance(4e-6)
      .property("out of range, twice", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        data.values["slot_row"] = {0, 1, 2, -1};
        if (const std::string text = context.refusal(data);
            text != "moe-combine.backward: slot_row: expected rows from 0 to 3, given -1 in slot 1 of token 1")
          return text;
        data.values["slot_row"] = {0, 0, 1, 3};
        const std::string text = context.refusal(data);
        return text == "moe-combine.backward: slot_row: expected each row once, given 0 in slot 1 of token 0" ? "" : text;
      });

  const int64_t tokens = 2048, top_k = 8, width = 1024;
  cases.add("moe-combine.forward", size_label({tokens, top_k, width}))
      .input("x", {tokens * top_k, width})
      .input("slot_row", {tokens, top_k}, permutation(), DType::i32)
      .input("weights", {tokens, top_k}, Fill::uniform(0, 1))
      .inout("y", {tokens, width})
      .flag("accumulate", true)
      .bench(0, 4.0 * tokens * width * (top_k + 2));
  cases.add("moe-combine.backward", size_label({tokens, top_k, width}))
      .input("d_y", {tokens, width})
      .input("x", {tokens * top_k, width})
      .input("slot_row", {tokens, top_k}, permutation(), DType::i32)
      .input("weights", {tokens, top_k}, Fill::uniform(0, 1))
      .output("d_x", {tokens * top_k, width})
      .output("d_weights", {tokens, top_k})
      .bench(0, 4.0 * tokens * width * (2 * top_k + 1));
}

}  // namespace trilithon::moe_combine
