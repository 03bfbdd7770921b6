#pragma once

#include <numeric>

#include "harness/execute.h"

namespace trilithon::moe_permute {

// A permutation of all rows.
inline Fill permutation() {
  return {[](std::vector<double>& values, const std::vector<int64_t>&, Random& random) {
    std::iota(values.begin(), values.end(), 0.0);
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }};
}

inline std::string check_plan(const PropertyContext& context) {
  const Outcome plan = context.run(context.data);
  const std::vector<double>& ids = context.data.values.at("ids");
  const std::vector<double> rows = plan.values("slot_row"), offsets = plan.values("offsets");
  std::vector<int64_t> slot_of(rows.size(), -1);
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t row = static_cast<size_t>(rows[i]), expert = static_cast<size_t>(ids[i]);
    if (slot_of[row] >= 0) return "row " + std::to_string(row) + " is taken twice";
    slot_of[row] = static_cast<int64_t>(i);
    if (rows[i] < offsets[expert] || rows[i] >= offsets[expert + 1]) return "row " + std::to_string(row) + " is not its expert's";
  }
  for (size_t row = 1; row < rows.size(); ++row) {
    const bool same_expert = ids[static_cast<size_t>(slot_of[row])] == ids[static_cast<size_t>(slot_of[row - 1])];
    if (same_expert && slot_of[row] < slot_of[row - 1]) return "rows of an expert are out of order";
  }
  return offsets.back() == static_cast<double>(rows.size()) ? "" : "offsets do not end at the number of rows";
}

// One token alone gives the rows that it has among others.
inline std::string check_token_alone(const PropertyContext& context) {
  const Outcome all = context.run(context.data);
  const int64_t tokens = context.data.values.at("x").empty() ? 0 : all["slot_row"].view().shape[0];
  const int64_t top_k = all["slot_row"].view().shape[1], width = all["y"].view().shape[1];
  for (int64_t t = 0; t < tokens; ++t) {
    CaseData one = context.data.rows({"x", "slot_row"}, t, t + 1);
    one.tensor("y").shape[0] = top_k;
    std::iota(one.values["slot_row"].begin(), one.values["slot_row"].end(), 0.0);
    const Outcome alone = context.run(one);
    for (int64_t i = 0; i < top_k * width; ++i) {
      const int64_t row = static_cast<int64_t>(all["slot_row"].value(t * top_k + i / width));
      if (alone["y"].bits(i) != all["y"].bits(row * width + i % width)) return "token " + std::to_string(t) + " alone differs";
    }
  }
  return "";
}

inline void add_cases(CaseList& cases) {
  struct Size {
    int64_t tokens, top_k, experts, width;
    DType type;
  };
  for (const Size s : {Size{1, 1, 1, 1, DType::u8},
                       {5, 2, 7, 15, DType::i32},
                       {40, 3, 9, 64, DType::u16},
                       {9, 8, 200, 83, DType::u8},
                       {0, 2, 4, 24, DType::u8}}) {
    const std::string size = size_label({s.tokens, s.top_k, s.experts, s.width});
    cases.add("moe-permute.plan", size)
        .input("ids", {s.tokens, s.top_k}, Fill::integers(0, s.experts), s.type)
        .output("slot_row", {s.tokens, s.top_k}, DType::i32)
        .output("offsets", {s.experts + 1}, DType::i32)
        .property("sorted and stable", check_plan);
    Case& forward = cases.add("moe-permute.forward", size);
    forward.input("x", {s.tokens, s.width})
        .input("slot_row", {s.tokens, s.top_k}, permutation(), DType::i32)
        .output("y", {s.tokens * s.top_k, s.width})
        .property("a token alone", check_token_alone);
    if (s.tokens > 0) forward.gradient("moe-permute.backward", {"x"});
    cases.add("moe-permute.backward", size)
        .input("d_y", {s.tokens * s.top_k, s.width})
        .input("slot_row", {s.tokens, s.top_k}, permutation(), DType::i32)
        .inout("d_x", {s.tokens, s.width})
        .flag("accumulate", s.top_k == 3)
        .tolerance(1e-6);
  }
  cases.add("moe-permute.forward", "strided, special values")
      .input("x", {8, 20}, Fill::special())
      .pitch("x", 33)
      .input("slot_row", {8, 2}, permutation(), DType::i32)
      .output("y", {16, 20})
      .pitch("y", 40);
  cases.add("moe-permute.backward", "one row for several tokens")
      .input("d_y", {3, 20})
      .input("slot_row", {8, 4}, Fill::integers(0, 3), DType::i32)
      .inout("d_x", {8, 20})
      .pitch("d_x", 24)
      .flag("accumulate", true)
      .rows({"slot_row", "d_x"})
      .tolerance(1e-6);
  cases.add("moe-permute.plan", "refused ids")
      .input("ids", {3, 2}, Fill::values({0, 1, 2, 3, 4, 0}), DType::u8)
      .output("slot_row", {3, 2}, DType::i32)
      .output("offsets", {6}, DType::i32)
      .property("out of range, missing", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        data.values["ids"][3] = 5;
        if (const std::string text = context.refusal(data);
            text != "moe-permute.plan: ids: expected experts from 0 to 4, given 5 in slot 1 of token 1")
          return text;
        data.values["ids"][2] = data.values["ids"][3] = 255;
        const std::string text = context.refusal(data);
        return text == "moe-permute.plan: ids: expected experts for every token, given a missing row (all bits set) for token 1" ? ""
                                                                                                                                 : text;
      });
  cases.add("moe-permute.forward", "refused rows")
      .input("x", {2, 4})
      .input("slot_row", {2, 2}, permutation(), DType::i32)
      .output("y", {4, 4})
      .property("out of range, twice", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        data.values["slot_row"] = {0, 1, 2, 4};
        if (const std::string text = context.refusal(data);
            text != "moe-permute.forward: slot_row: expected rows from 0 to 3, given 4 in slot 1 of token 1")
          return text;
        data.values["slot_row"] = {0, 1, 1, 3};
        const std::string text = context.refusal(data);
        return text == "moe-permute.forward: slot_row: expected each row once, given 1 in slot 0 of token 1" ? "" : text;
      });

  const int64_t tokens = 2048, top_k = 8, width = 1024;
  cases.add("moe-permute.plan", "2048x8 of 128")
      .input("ids", {tokens, top_k}, Fill::integers(0, 128), DType::u8)
      .output("slot_row", {tokens, top_k}, DType::i32)
      .output("offsets", {129}, DType::i32)
      .bench(0, 5.0 * tokens * top_k);
  cases.add("moe-permute.forward", size_label({tokens, top_k, width}))
      .input("x", {tokens, width})
      .input("slot_row", {tokens, top_k}, permutation(), DType::i32)
      .output("y", {tokens * top_k, width})
      .bench(0, 4.0 * tokens * width * (top_k + 1));
  cases.add("moe-permute.backward", size_label({tokens, top_k, width}))
      .input("d_y", {tokens * top_k, width})
      .input("slot_row", {tokens, top_k}, permutation(), DType::i32)
      .inout("d_x", {tokens, width})
      .flag("accumulate", false)
      .bench(0, 4.0 * tokens * width * (top_k + 1));
}

}  // namespace trilithon::moe_permute
