#pragma once

#include "harness/execute.h"

namespace trilithon::pointwise {

// One case of each arithmetic entry, for the tensors that `shape` and `arrange` make.
template <typename Arrange>
void add_each(CaseList& cases, const std::string& label, const std::vector<int64_t>& shape, Arrange arrange) {
  for (const char* entry : {"pointwise.add", "pointwise.multiply"}) {
    Case& item = cases.add(entry, label);
    arrange(item.input("a", shape).input("b", shape).output("y", shape).tolerance(2e-7));
  }
  arrange(cases.add("pointwise.multiply-add", label).input("a", shape).input("b", shape).inout("y", shape).tolerance(2e-7));
  arrange(cases.add("pointwise.scale", label).input("x", shape).output("y", shape).number("factor", -0.375).tolerance(2e-7));
  arrange(cases.add("pointwise.add-scaled", label).input("x", shape).inout("y", shape).number("factor", -0.375).tolerance(2e-7));
  arrange(cases.add("pointwise.fill", label).output("y", shape).number("value", -2.5));
  arrange(cases.add("pointwise.copy", label).input("x", shape).output("y", shape));
}

inline bool has(const Case& item, const char* name) {
  for (const TensorSpec& spec : item.data.tensors) {
    if (spec.name == name) return true;
  }
  return false;
}

inline std::string expect_refusal(const PropertyContext& context, const CaseData& data, const std::string& part) {
  const std::string message = context.refusal(data);
  return message.find(part) != std::string::npos ? "" : "the refusal says \"" + message + "\" and not \"" + part + "\"";
}

inline void add_cases(CaseList& cases) {
  const auto plain = [](Case& item) {
    if (item.entry == "pointwise.add" || item.entry == "pointwise.multiply") item.in_place("y", "b");
    if (item.entry == "pointwise.scale") item.in_place("y", "x");
    const bool pair = has(item, "a");
    if (pair) {
      item.rows({"a", "b", "y"});
    } else if (has(item, "x")) {
      item.rows({"x", "y"});
    }
  };
  add_each(cases, "1", {1}, plain);
  add_each(cases, "7x83", {7, 83}, plain);
  add_each(cases, "2x3x5x2", {2, 3, 5, 2}, plain);
  // Longer than a piece, which threads share.
  add_each(cases, "50001", {50001}, [](Case&) {});
  add_each(cases, "0x5", {0, 5}, [](Case&) {});
  add_each(cases, "no dims", {}, [](Case&) {});
  // Columns of a wider matrix; every operand its own way.
  add_each(cases, "strided", {6, 40}, [](Case& item) {
    item.pitch("y", 50);
    if (has(item, "a")) item.pitch("a", 72);
    if (has(item, "x")) item.pitch("x", 41);
  });
  // Transposed operands, also of the output.
  add_each(cases, "transposed", {5, 33, 4}, [](Case& item) {
    if (has(item, "a")) item.strides("a", {4, 20, 1});
    if (has(item, "x")) item.strides("x", {1, 5, 165});
    if (has(item, "b")) item.strides("b", {132, 1, 33});
    item.strides("y", {1, 5, 170});
  });
  // An operand that repeats one row, and one that repeats one number.
  add_each(cases, "repeated", {6, 20}, [](Case& item) {
    if (has(item, "a")) item.strides("a", {0, 1});
    if (has(item, "x")) item.strides("x", {1, 0});
    if (has(item, "b")) item.strides("b", {0, 0});
  });
  for (const char* entry : {"pointwise.add", "pointwise.multiply"})
    cases.add(entry, "special values")
        .input("a", {8, 33}, trilithon::Fill::special())
        .input("b", {8, 33})
        .output("y", {8, 33})
        .tolerance(2e-7);
  // Every element type, with the bits it has.
  for (const DType dtype : {DType::bf16, DType::f16, DType::u16}) {
    cases.add("pointwise.copy", std::string("codes of ") + dtype_name(dtype))
        .input("x", {256, 256}, trilithon::Fill::codes(), dtype)
        .output("y", {256, 256}, dtype)
        .strides("y", {1, 256});
  }
  for (const DType dtype : {DType::e4m3, DType::e5m2, DType::u8}) {
    cases.add("pointwise.copy", std::string("codes of ") + dtype_name(dtype))
        .input("x", {16, 16}, trilithon::Fill::codes(), dtype)
        .output("y", {16, 16}, dtype)
        .strides("y", {1, 16});
  }
  for (const DType dtype : {DType::f64, DType::i32, DType::i64, DType::u32}) {
    cases.add("pointwise.copy", std::string("numbers of ") + dtype_name(dtype))
        .input("x", {9, 21}, trilithon::Fill::integers(0, 1000), dtype)
        .pitch("x", 30)
        .output("y", {9, 21}, dtype);
  }
  cases.add("pointwise.add", "refusals")
      .input("a", {3, 4})
      .input("b", {3, 4})
      .output("y", {3, 4})
      .tolerance(2e-7)
      .property("another shape",
                [](const PropertyContext& context) {
                  CaseData data = context.data.rows({"b"}, 0, 2);
                  return expect_refusal(context, data, "as in a");
                })
      .property("an output whose elements meet", [](const PropertyContext& context) {
        CaseData data = context.data;
        data.tensor("y").strides = {2, 1};
        return expect_refusal(context, data, "places of their own");
      });
  cases.add("pointwise.copy", "refusals")
      .input("x", {3, 4})
      .output("y", {3, 4})
      .property("another dtype", [](const PropertyContext& context) {
        CaseData data = context.data;
        data.tensor("y").dtype = DType::i32;
        return expect_refusal(context, data, "dtype f32, which x has");
      });

  const std::vector<int64_t> large = {2048, 2048};
  const double bytes = 4.0 * 2048 * 2048;
  cases.add("pointwise.fill", "2048x2048").output("y", large).number("value", 1).bench(0, bytes);
  cases.add("pointwise.copy", "2048x2048").input("x", large).output("y", large).bench(0, 2 * bytes);
  cases.add("pointwise.add", "2048x2048").input("a", large).input("b", large).output("y", large).bench(0, 3 * bytes);
  cases.add("pointwise.add-scaled", "2048x2048").input("x", large).inout("y", large).number("factor", 0.5).bench(0, 3 * bytes);
}

}  // namespace trilithon::pointwise
