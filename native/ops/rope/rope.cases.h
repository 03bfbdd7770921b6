#pragma once

#include "harness/case.h"
#include "ops/rope/rope.h"

namespace trilithon::rope {

inline void add_cases(CaseList& cases) {
  // What the models use: theta 1e6, rotary widths 64 and 128, positions that start again with each document.
  const Fill frequencies{[](std::vector<double>& values, const std::vector<int64_t>&, Random&) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::pow(1e6, -static_cast<double>(i) / static_cast<double>(values.size()));
  }};
  for (const int64_t half : {1, 5, 16, 32, 64, 83}) {
    cases.add("rope.tables", size_label({7, half}))
        .input("positions", {7}, Fill::values({0, 1, 2, 0, 40961, 131071, largest_position}), DType::i32)
        .input("inverse_frequencies", {half}, frequencies)
        .output("cosines", {7, half})
        .output("sines", {7, half})
        .number("scale", half == 5 ? 1.34657 : 1)
        .rows({"positions", "cosines", "sines"})
        .tolerance(2e-7);
  }
  cases.add("rope.tables", "refused positions")
      .input("positions", {3}, Fill::values({5, 6, 7}), DType::i32)
      .input("inverse_frequencies", {4}, frequencies)
      .output("cosines", {3, 4})
      .output("sines", {3, 4})
      .number("scale", 1)
      .tolerance(2e-7)
      .property("positions out of range", [](const PropertyContext& context) -> std::string {
        for (const double position : {-1.0, double(largest_position + 1)}) {
          CaseData data = context.data;
          data.values["positions"][1] = position;
          const std::string text = context.refusal(data);
          if (text.find("positions: expected positions from 0 to 1048576, given ") == std::string::npos) return text;
        }
        return "";
      });

  struct Size {
    int64_t tokens, heads, width, half;
  };
  for (const bool interleaved : {false, true}) {
    const std::string layout = interleaved ? "interleaved " : "halves ";
    for (const Size s : {Size{1, 1, 2, 1}, {3, 2, 64, 32}, {5, 3, 128, 64}, {2, 5, 40, 17}, {4, 3, 83, 9}}) {
      const auto size = layout + size_label({s.tokens, s.heads, s.width, s.half});
      cases.add("rope.forward", size)
          .input("x", {s.tokens, s.heads, s.width})
          .input("cosines", {s.tokens, s.half}, Fill::uniform(-1, 1))
          .input("sines", {s.tokens, s.half}, Fill::uniform(-1, 1))
          .output("y", {s.tokens, s.heads, s.width})
          .flag("interleaved", interleaved)
          .rows({"x", "cosines", "sines", "y"})
          .in_place("y", "x")
          .tolerance(2e-7)
          .gradient("rope.backward", {"x"});
      cases.add("rope.backward", size)
          .input("d_y", {s.tokens, s.heads, s.width})
          .input("cosines", {s.tokens, s.half}, Fill::uniform(-1, 1))
          .input("sines", {s.tokens, s.half}, Fill::uniform(-1, 1))
          .output("d_x", {s.tokens, s.heads, s.width})
          .flag("interleaved", interleaved)
          .rows({"d_y", "cosines", "sines", "d_x"})
          .in_place("d_x", "d_y")
          .tolerance(2e-7);
    }
    // The rotary slice [192, 256) of each query head, written behind another part of 512 elements.
    cases.add("rope.forward", layout + "slices of heads")
        .input("x", {3, 4, 64})
        .head_pitch("x", 256)
        .input("cosines", {3, 32}, Fill::uniform(-1, 1))
        .input("sines", {3, 32}, Fill::uniform(-1, 1))
        .output("y", {3, 4, 64})
        .head_pitch("y", 576)
        .pitch("y", 4 * 576 + 8)
        .flag("interleaved", interleaved)
        .rows({"x", "cosines", "sines", "y"})
        .tolerance(2e-7);
    cases.add("rope.forward", layout + "special values")
        .input("x", {8, 1, 33}, Fill::special())
        .input("cosines", {8, 16}, Fill::uniform(0.5, 1))
        .input("sines", {8, 16}, Fill::uniform(0.5, 1))
        .output("y", {8, 1, 33})
        .flag("interleaved", interleaved)
        .rows({"x", "cosines", "sines", "y"})
        .tolerance(2e-7);

    const int64_t tokens = 2048, heads = 16, width = 128;
    cases.add("rope.forward", layout + size_label({tokens, heads, width}))
        .input("x", {tokens, heads, width})
        .input("cosines", {tokens, width / 2}, Fill::uniform(-1, 1))
        .input("sines", {tokens, width / 2}, Fill::uniform(-1, 1))
        .output("y", {tokens, heads, width})
        .flag("interleaved", interleaved)
        .bench(0, 4.0 * tokens * (2 * heads * width + width));
  }
  cases.add("rope.forward", "refused width")
      .input("x", {2, 2, 8})
      .input("cosines", {2, 4}, Fill::uniform(-1, 1))
      .input("sines", {2, 4}, Fill::uniform(-1, 1))
      .output("y", {2, 2, 8})
      .flag("interleaved", false)
      .tolerance(2e-7)
      .property("tables wider than half a head", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        for (const char* name : {"cosines", "sines"}) {
          data.tensor(name).shape[1] = 5;
          data.values[name].resize(10);
        }
        const std::string text = context.refusal(data);
        return text == "rope.forward: cosines: expected at most 4 columns, half the width of a head, given 5" ? "" : text;
      });
  cases.add("rope.tables", "32768x32")
      .input("positions", {32768}, Fill::integers(0, 32768), DType::i32)
      .input("inverse_frequencies", {32}, frequencies)
      .output("cosines", {32768, 32})
      .output("sines", {32768, 32})
      .number("scale", 1)
      .bench(0, 8.0 * 32768 * 32);
}

}  // namespace trilithon::rope
