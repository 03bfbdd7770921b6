#pragma once

#include <cmath>
#include <limits>

#include "harness/execute.h"

namespace trilithon::gemm {

struct Size {
  int64_t tokens, n, k;
  std::string label() const { return size_label({tokens, n, k}); }
};

inline int64_t panels_of(int64_t columns) { return (columns + 31) / 32; }

// The rounding error of a chain grows like the root of its length.
inline double tolerance_of(int64_t length) { return 1e-6 + 3e-7 * std::sqrt(static_cast<double>(length)); }

// An output that is set must not depend on what was there.
inline Fill before(bool accumulate) { return accumulate ? Fill::normal() : Fill::constant(std::numeric_limits<double>::quiet_NaN()); }

// The same call with the weight packed first.
inline CaseData with_packed(const PropertyContext& context, bool backward) {
  CaseData data = context.data;
  const TensorSpec weight = data.tensor("weight");
  const int64_t n = weight.shape[0], k = weight.shape[1];
  CaseData pack;
  pack.tensors = {weight, {"packed", {panels_of(backward ? k : n), backward ? n : k, 32}, DType::f32, {}, 0, 0}};
  pack.values["weight"] = data.values.at("weight");
  pack.scalars["backward"] = backward ? 1 : 0;
  const Outcome packed = context.run("gemm.pack", pack);
  std::erase_if(data.tensors, [](const TensorSpec& spec) { return spec.name == "weight"; });
  data.values.erase("weight");
  data.tensors.push_back(pack.tensors[1]);
  data.values["packed"] = packed.values("packed");
  return data;
}

inline Property packed_is_equal(const char* output, bool backward) {
  return [output, backward](const PropertyContext& context) -> std::string {
    const Outcome plain = context.run(context.data), packed = context.run(with_packed(context, backward));
    return compare_bits(packed[output], plain[output]);
  };
}

// Columns [begin, end) of a tensor of the case.
inline void keep_columns(CaseData& data, const std::string& name, int64_t begin, int64_t end) {
  TensorSpec& spec = data.tensor(name);
  const int64_t rows = spec.shape[0], width = spec.shape[1];
  const std::vector<double> all = data.values.at(name);
  std::vector<double> kept;
  for (int64_t r = 0; r < rows; ++r) kept.insert(kept.end(), all.begin() + r * width + begin, all.begin() + r * width + end);
  spec.shape[1] = end - begin;
  spec.pitch = 0;
  data.values[name] = kept;
}

// k cut in two, the second product continuing the first: the bits of one.
inline std::string cut_k(const PropertyContext& context) {
  const Outcome whole = context.run(context.data);
  CaseData head = context.data, tail = context.data;
  const int64_t k = head.tensor("x").shape[1];
  if (k < 2) return {};
  const int64_t cut = 1 + context.random.below(k - 1);
  for (const char* name : {"x", "weight"}) {
    keep_columns(head, name, 0, cut);
    keep_columns(tail, name, cut, k);
  }
  // The bias comes last.
  std::erase_if(head.tensors, [](const TensorSpec& spec) { return spec.name == "bias"; });
  tail.values["y"] = context.run(head).values("y");
  tail.scalars["accumulate"] = 1;
  return compare_bits(context.run(tail)["y"], whole["y"]);
}

// Some columns of y alone, from some rows of the weight.
inline std::string some_columns(const PropertyContext& context) {
  const Outcome whole = context.run(context.data);
  CaseData part = context.data;
  const int64_t n = part.tensor("y").shape[1], begin = context.random.below(n), end = begin + 1 + context.random.below(n - begin);
  keep_columns(part, "y", begin, end);
  part = part.rows({"weight"}, begin, end);
  if (part.values.contains("bias")) part = part.rows({"bias"}, begin, end);
  const std::vector<double> some = context.run(part).values("y"), all = whole.values("y");
  for (int64_t t = 0; t < part.tensor("y").shape[0]; ++t) {
    for (int64_t j = begin; j < end; ++j) {
      if (some[static_cast<size_t>(t * (end - begin) + j - begin)] != all[static_cast<size_t>(t * n + j)]) return "y differs";
    }
  }
  return {};
}

inline std::string expect_refusal(const PropertyContext& context, const CaseData& data, const std::string& part) {
  const std::string message = context.refusal(data);
  return message.find(part) != std::string::npos ? "" : "the refusal says \"" + message + "\" and not \"" + part + "\"";
}

inline Case& add_forward(CaseList& cases, const Size& s, bool bias, bool accumulate) {
  Case& item = cases.add("gemm.forward", s.label());
  item.input("x", {s.tokens, s.k}).input("weight", {s.n, s.k});
  if (bias) item.input("bias", {s.n});
  return item.inout("y", {s.tokens, s.n}, before(accumulate)).flag("accumulate", accumulate).rows({"x", "y"}).tolerance(tolerance_of(s.k));
}

inline Case& add_backward_x(CaseList& cases, const Size& s, bool accumulate) {
  return cases.add("gemm.backward-x", s.label())
      .input("d_y", {s.tokens, s.n})
      .input("weight", {s.n, s.k})
      .inout("d_x", {s.tokens, s.k}, before(accumulate))
      .flag("accumulate", accumulate)
      .rows({"d_y", "d_x"})
      .tolerance(tolerance_of(s.n));
}

inline Case& add_backward_weight(CaseList& cases, const Size& s, bool bias, bool accumulate) {
  Case& item = cases.add("gemm.backward-weight", s.label());
  item.input("d_y", {s.tokens, s.n}).input("x", {s.tokens, s.k}).inout("d_weight", {s.n, s.k}, before(accumulate));
  if (bias) item.inout("d_bias", {s.n}, before(accumulate));
  return item.flag("accumulate", accumulate).tolerance(tolerance_of(s.tokens));
}

inline void add_refusals(CaseList& cases) {
  cases.add("gemm.forward", "refusals")
      .input("x", {3, 5})
      .input("weight", {4, 5})
      .inout("y", {3, 4})
      .tolerance(tolerance_of(33))
      .property("neither weight nor packed",
                [](const PropertyContext& context) {
                  CaseData data = context.data;
                  std::erase_if(data.tensors, [](const TensorSpec& spec) { return spec.name == "weight"; });
                  return expect_refusal(context, data, "either weight or packed");
                })
      .property("weight and packed",
                [](const PropertyContext& context) {
                  CaseData data = with_packed(context, false);
                  data.tensors.push_back({"weight", {4, 5}, DType::f32, {}, 0, 0});
                  data.values["weight"] = std::vector<double>(20, 1.0);
                  return expect_refusal(context, data, "given both");
                })
      .property("packed for another width",
                [](const PropertyContext& context) {
                  CaseData data = with_packed(context, true);
                  return expect_refusal(context, data, "packed");
                })
      .property("another k",
                [](const PropertyContext& context) {
                  CaseData data = context.data;
                  keep_columns(data, "x", 0, 4);
                  return expect_refusal(context, data, "weight");
                })
      .property("zero rows", [](const PropertyContext& context) {
        return expect_refusal(context, context.data.rows({"x", "y"}, 0, 0), "no zero among them");
      });
}

inline void add_benches(CaseList& cases) {
  const auto flops = [](const Size& s) {
    return 2.0 * static_cast<double>(s.tokens) * static_cast<double>(s.n) * static_cast<double>(s.k);
  };
  for (const Size s : {Size{512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {2048, 1024, 4096}, {2048, 384, 128}}) {
    cases.add("gemm.forward", s.label() + " packed")
        .input("x", {s.tokens, s.k})
        .input("packed", {panels_of(s.n), s.k, 32})
        .inout("y", {s.tokens, s.n})
        .bench(flops(s), 0);
    cases.add("gemm.forward", s.label())
        .input("x", {s.tokens, s.k})
        .input("weight", {s.n, s.k})
        .inout("y", {s.tokens, s.n})
        .bench(flops(s), 0);
    cases.add("gemm.backward-x", s.label() + " packed")
        .input("d_y", {s.tokens, s.n})
        .input("packed", {panels_of(s.k), s.n, 32})
        .inout("d_x", {s.tokens, s.k})
        .bench(flops(s), 0);
    cases.add("gemm.backward-x", s.label())
        .input("d_y", {s.tokens, s.n})
        .input("weight", {s.n, s.k})
        .inout("d_x", {s.tokens, s.k})
        .bench(flops(s), 0);
    cases.add("gemm.backward-weight", s.label())
        .input("d_y", {s.tokens, s.n})
        .input("x", {s.tokens, s.k})
        .inout("d_weight", {s.n, s.k})
        .bench(flops(s), 0);
  }
  for (const int64_t tokens : {1, 2, 3, 4, 5, 6, 7, 8, 16}) {
    const Size s{tokens, 4096, 4096};
    cases.add("gemm.forward", s.label() + " packed")
        .input("x", {s.tokens, s.k})
        .input("packed", {panels_of(s.n), s.k, 32})
        .inout("y", {s.tokens, s.n})
        .bench(flops(s), 4.0 * static_cast<double>(s.n * s.k));
  }
  const Size s{0, 2048, 2048};
  for (const bool backward : {false, true}) {
    cases.add("gemm.pack", backward ? "2048x2048 backward" : "2048x2048")
        .input("weight", {s.n, s.k})
        .output("packed", {64, 2048, 32})
        .flag("backward", backward)
        .bench(0, 8.0 * static_cast<double>(s.n * s.k));
  }
}

inline void add_cases(CaseList& cases) {
  // One of everything; odd sizes; several tiles, panels and blocks in each direction.
  for (const Size s : {Size{1, 1, 1}, {3, 5, 7}, {2, 130, 31}, {7, 33, 64}, {13, 96, 40}, {8, 260, 130}, {150, 70, 300}, {29, 517, 9}}) {
    const bool odd = s.tokens % 2 == 1;
    add_forward(cases, s, odd, !odd)
        .gradient("gemm.backward-x", {"x"})
        .property("packed", packed_is_equal("y", false))
        .property("k in two parts", cut_k)
        .property("some columns", some_columns);
    add_backward_x(cases, s, odd).property("packed", packed_is_equal("d_x", true));
    add_backward_weight(cases, s, odd, !odd).rows({"d_y", "x"}).accumulates("accumulate", {"d_weight"});
  }
  add_forward(cases, {4, 6, 9}, true, true).gradient("gemm.backward-weight", {"weight", "bias"}).label += " gradient of weight and bias";
  // More k than one block of weights holds, by rows of all tile heights.
  for (int64_t tokens = 1; tokens <= 25; tokens += 3) {
    add_backward_weight(cases, {600, tokens, 40}, true, false).label += " long";
    add_forward(cases, {tokens, 40, 600}, false, false).property("packed", packed_is_equal("y", false)).label += " long";
  }
  // Slices of columns of wider matrices.
  add_forward(cases, {6, 40, 50}, true, false).pitch("x", 72).pitch("weight", 64).pitch("y", 55).label = "strided";
  add_backward_x(cases, {6, 40, 50}, true).pitch("d_y", 72).pitch("weight", 64).pitch("d_x", 55).label = "strided";
  add_backward_weight(cases, {6, 40, 50}, true, false).pitch("d_y", 72).pitch("x", 64).pitch("d_weight", 55).label = "strided";
  // Zeros, subnormals, infinities and NaN stay in their row of x, and in their column of y when they are in the weight.
  cases.add("gemm.forward", "special values")
      .input("x", {8, 33}, Fill::special())
      .input("weight", {40, 33})
      .inout("y", {8, 40}, before(false))
      .rows({"x", "y"})
      .tolerance(tolerance_of(33));
  cases.add("gemm.forward", "special weights")
      .input("x", {5, 33})
      .input("weight", {40, 33}, Fill::special())
      .inout("y", {5, 40}, before(false))
      .tolerance(tolerance_of(33));
  cases.add("gemm.backward-weight", "special values")
      .input("d_y", {33, 5}, Fill::special())
      .input("x", {33, 40})
      .inout("d_weight", {5, 40}, before(false))
      .inout("d_bias", {5}, before(false))
      .tolerance(tolerance_of(33));
  for (const bool backward : {false, true}) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {31, 5}, {32, 64}, {65, 100}}) {
      cases.add("gemm.pack", size_label({n, k}) + (backward ? " backward" : ""))
          .input("weight", {n, k}, Fill::special())
          .pitch("weight", k + 3)
          .output("packed", {panels_of(backward ? k : n), backward ? n : k, 32})
          .flag("backward", backward);
    }
  }
  add_refusals(cases);
  add_benches(cases);
}

}  // namespace trilithon::gemm
