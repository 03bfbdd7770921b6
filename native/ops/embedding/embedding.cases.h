#pragma once

#include "harness/case.h"

namespace trilithon::embedding {

inline void add_cases(CaseList& cases) {
  struct Size {
    int64_t tokens, vocabulary, width;
  };
  for (const Size s : {Size{1, 1, 1}, {5, 3, 15}, {40, 7, 64}, {9, 30, 83}, {6, 4, 1030}}) {
    const std::string size = size_label({s.tokens, s.vocabulary, s.width});
    cases.add("embedding.forward", size)
        .input("ids", {s.tokens}, Fill::integers(0, s.vocabulary), DType::i32)
        .input("table", {s.vocabulary, s.width})
        .output("y", {s.tokens, s.width})
        .rows({"ids", "y"})
        .gradient("embedding.backward", {"table"});
    cases.add("embedding.backward", size)
        .input("d_y", {s.tokens, s.width})
        .input("ids", {s.tokens}, Fill::integers(0, s.vocabulary), DType::i32)
        .inout("d_table", {s.vocabulary, s.width})
        .flag("accumulate", s.tokens % 2 == 1)
        .rows({"d_y", "ids"})
        .accumulates("accumulate", {"d_table"})
        .tolerance(1e-6);
  }
  cases.add("embedding.forward", "strided, special values")
      .input("ids", {12}, Fill::integers(0, 8), DType::i32)
      .input("table", {8, 33}, Fill::special())
      .pitch("table", 40)
      .output("y", {12, 33})
      .pitch("y", 50)
      .rows({"ids", "y"});
  for (const char* entry : {"embedding.forward", "embedding.backward"}) {
    const bool forward = std::string(entry) == "embedding.forward";
    Case& item = cases.add(entry, "refused ids").input("ids", {3}, Fill::values({0, 4, 1}), DType::i32);
    if (forward) item.input("table", {5, 4}).output("y", {3, 4});
    if (!forward) item.input("d_y", {3, 4}).inout("d_table", {5, 4}).flag("accumulate", false).tolerance(1e-6);
    item.property("ids out of range", [entry](const PropertyContext& context) -> std::string {
      for (const double id : {-1.0, 5.0}) {
        CaseData data = context.data;
        data.values["ids"][2] = id;
        const std::string text = context.refusal(data);
        const std::string want = entry + (": ids: expected ids from 0 to 4, given " + std::to_string(static_cast<int>(id)) + " at 2");
        if (text != want) return text;
      }
      return "";
    });
  }

  const int64_t tokens = 2048, vocabulary = 8192, width = 2048;
  cases.add("embedding.forward", size_label({tokens, vocabulary, width}))
      .input("ids", {tokens}, Fill::integers(0, vocabulary), DType::i32)
      .input("table", {vocabulary, width})
      .output("y", {tokens, width})
      .bench(0, 8.0 * tokens * width);
  cases.add("embedding.backward", size_label({tokens, vocabulary, width}))
      .input("d_y", {tokens, width})
      .input("ids", {tokens}, Fill::integers(0, vocabulary), DType::i32)
      .inout("d_table", {vocabulary, width})
      .flag("accumulate", true)
      .bench(0, 12.0 * tokens * width);
}

}  // namespace trilithon::embedding
