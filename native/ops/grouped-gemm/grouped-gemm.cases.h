#pragma once

#include <cmath>
#include <limits>

#include "harness/execute.h"

namespace trilithon::grouped_gemm {

inline int64_t panels_of(int64_t columns) { return (columns + 31) / 32; }

// The rounding error of a chain grows like the root of its length.
inline double tolerance_of(int64_t length) { return 1e-6 + 3e-7 * std::sqrt(static_cast<double>(length)); }

// An output that is set must not depend on what was there.
inline Fill before(bool accumulate) { return accumulate ? Fill::normal() : Fill::constant(std::numeric_limits<double>::quiet_NaN()); }

// Rows of each expert, and the sizes of its weight.
struct Shape {
  std::vector<int64_t> rows;
  int64_t n, k;

  int64_t experts() const { return static_cast<int64_t>(rows.size()); }
  int64_t total() const {
    int64_t sum = 0;
    for (const int64_t count : rows) sum += count;
    return sum;
  }
  Fill starts() const {
    std::vector<double> list = {0};
    for (const int64_t count : rows) list.push_back(list.back() + static_cast<double>(count));
    return Fill::values(list);
  }
  std::string label() const { return size_label({experts(), total(), n, k}); }
};

// The same call with the weights packed first.
inline CaseData with_packed(const PropertyContext& context, bool backward) {
  CaseData data = context.data;
  const TensorSpec weight = data.tensor("weight");
  const int64_t n = weight.shape[1], k = weight.shape[2];
  CaseData pack;
  pack.tensors = {weight, {"packed", {weight.shape[0], panels_of(backward ? k : n), backward ? n : k, 32}, DType::f32, {}, 0, 0}};
  pack.values["weight"] = data.values.at("weight");
  pack.scalars["backward"] = backward ? 1 : 0;
  const Outcome packed = context.run("grouped-gemm.pack", pack);
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

// Rows [begin, end) alone, the others left out: each expert keeps what it has of them.
inline CaseData rows_of(const CaseData& data, std::vector<std::string> names, int64_t begin, int64_t end) {
  CaseData part = data.rows(names, begin, end);
  for (double& start : part.values.at("expert_starts")) {
    start = std::clamp(start, static_cast<double>(begin), static_cast<double>(end)) - static_cast<double>(begin);
  }
  return part;
}

// A row is its expert's alone: in any part of the rows it has the same bits.
inline Property rows_alone(const char* input, const char* output) {
  return [input, output](const PropertyContext& context) -> std::string {
    const Outcome whole = context.run(context.data);
    const int64_t rows = whole[output].spec().shape[0];
    for (int64_t begin = 0; begin < rows;) {
      // Parts from one row to all, one of them empty.
      const int64_t end = std::min(rows, begin + context.random.below(1 + rows / 2));
      const Outcome part = context.run(rows_of(context.data, {input, output}, begin, end));
      const std::string difference = compare_rows(part[output], whole[output], begin);
      if (!difference.empty()) return "rows from " + std::to_string(begin) + ": " + difference;
      begin = std::max(end, begin + 1);
    }
    return {};
  };
}

// Gradients added over two calls are those of one.
inline std::string gradient_in_parts(const PropertyContext& context) {
  const Outcome whole = context.run(context.data);
  const int64_t rows = whole["x"].spec().shape[0], cut = context.random.below(rows + 1);
  const Outcome head = context.run(rows_of(context.data, {"d_y", "x"}, 0, cut));
  CaseData tail = rows_of(context.data, {"d_y", "x"}, cut, rows);
  tail.values["d_weight"] = head.values("d_weight");
  tail.scalars["accumulate"] = 1;
  return compare_bits(context.run(tail)["d_weight"], whole["d_weight"]);
}

inline std::string expect_refusal(const PropertyContext& context, const CaseData& data, const std::string& part) {
  const std::string message = context.refusal(data);
  return message.find(part) != std::string::npos ? "" : "the refusal says \"" + message + "\" and not \"" + part + "\"";
}

inline Case& add_forward(CaseList& cases, const Shape& s, bool accumulate) {
  return cases.add("grouped-gemm.forward", s.label())
      .input("x", {s.total(), s.k})
      .input("weight", {s.experts(), s.n, s.k})
      .input("expert_starts", {s.experts() + 1}, s.starts(), DType::i32)
      .inout("y", {s.total(), s.n}, before(accumulate))
      .flag("accumulate", accumulate)
      .tolerance(tolerance_of(s.k));
}

inline Case& add_backward_x(CaseList& cases, const Shape& s, bool accumulate) {
  return cases.add("grouped-gemm.backward-x", s.label())
      .input("d_y", {s.total(), s.n})
      .input("weight", {s.experts(), s.n, s.k})
      .input("expert_starts", {s.experts() + 1}, s.starts(), DType::i32)
      .inout("d_x", {s.total(), s.k}, before(accumulate))
      .flag("accumulate", accumulate)
      .tolerance(tolerance_of(s.n));
}

inline Case& add_backward_weight(CaseList& cases, const Shape& s, bool accumulate) {
  return cases.add("grouped-gemm.backward-weight", s.label())
      .input("d_y", {s.total(), s.n})
      .input("x", {s.total(), s.k})
      .input("expert_starts", {s.experts() + 1}, s.starts(), DType::i32)
      .inout("d_weight", {s.experts(), s.n, s.k}, before(accumulate))
      .flag("accumulate", accumulate)
      .tolerance(tolerance_of(s.total()));
}

inline void add_refusals(CaseList& cases) {
  const auto with_starts = [](std::vector<double> starts, const char* part) {
    return [starts, part](const PropertyContext& context) {
      CaseData data = context.data;
      data.tensor("expert_starts").shape[0] = static_cast<int64_t>(starts.size());
      data.values["expert_starts"] = starts;
      return expect_refusal(context, data, part);
    };
  };
  Case& item = add_forward(cases, {{2, 0, 3}, 4, 5}, false);
  item.label = "refusals";
  item.property("starts that fall", with_starts({0, 3, 2, 5}, "expert_starts[2] = 2 after 3"))
      .property("starts beyond the rows", with_starts({0, 2, 9, 9}, "expert_starts[2] = 9 after 2"))
      .property("starts that begin late", with_starts({1, 2, 2, 5}, "expert_starts[0] = 1"))
      .property("rows that are left over", with_starts({0, 2, 2, 4}, "a last number of 4"))
      .property("another number of experts", with_starts({0, 2, 5}, "expert_starts"))
      .property("neither weight nor packed",
                [](const PropertyContext& context) {
                  CaseData data = context.data;
                  std::erase_if(data.tensors, [](const TensorSpec& spec) { return spec.name == "weight"; });
                  return expect_refusal(context, data, "either weight or packed");
                })
      .property("zero experts", [](const PropertyContext& context) {
        CaseData data = context.data.rows({"weight"}, 0, 0).rows({"x", "y"}, 0, 0).rows({"expert_starts"}, 0, 1);
        return expect_refusal(context, data, "no zero among them");
      });
}

inline void add_benches(CaseList& cases) {
  // A dense product of the same work is 4096 rows of gemm.forward.
  for (const int64_t experts : {1, 8, 16, 64}) {
    const Shape s{std::vector<int64_t>(static_cast<size_t>(experts), 4096 / experts), 512, 1024};
    const double flops = 2.0 * 4096 * 512 * 1024;
    cases.add("grouped-gemm.forward", s.label() + " packed")
        .input("x", {s.total(), s.k})
        .input("packed", {experts, panels_of(s.n), s.k, 32})
        .input("expert_starts", {experts + 1}, s.starts(), DType::i32)
        .inout("y", {s.total(), s.n})
        .bench(flops, 0);
    cases.add("grouped-gemm.backward-x", s.label() + " packed")
        .input("d_y", {s.total(), s.n})
        .input("packed", {experts, panels_of(s.k), s.n, 32})
        .input("expert_starts", {experts + 1}, s.starts(), DType::i32)
        .inout("d_x", {s.total(), s.k})
        .bench(flops, 0);
    cases.add("grouped-gemm.backward-weight", s.label())
        .input("d_y", {s.total(), s.n})
        .input("x", {s.total(), s.k})
        .input("expert_starts", {experts + 1}, s.starts(), DType::i32)
        .inout("d_weight", {experts, s.n, s.k})
        .bench(flops, 0);
  }
}

inline void add_cases(CaseList& cases) {
  // One expert; experts without rows at the start, inside and at the end; parts larger than one block.
  for (const Shape& s : {Shape{{1}, 1, 1},
                         {{3, 0, 1}, 5, 7},
                         {{0, 2, 13, 0, 5, 0}, 33, 64},
                         {{7, 160, 1}, 40, 300},
                         {{1, 1, 1, 1, 0, 1, 1, 1, 1}, 130, 31},
                         {{20, 9, 0, 14, 3, 1, 0, 30, 2, 2, 5, 1, 1, 8, 12, 4, 6}, 17, 70}}) {
    const bool odd = s.total() % 2 == 1;
    add_forward(cases, s, odd)
        .gradient("grouped-gemm.backward-x", {"x"})
        .property("packed", packed_is_equal("y", false))
        .property("rows alone", rows_alone("x", "y"));
    add_backward_x(cases, s, !odd).property("packed", packed_is_equal("d_x", true)).property("rows alone", rows_alone("d_y", "d_x"));
    add_backward_weight(cases, s, odd).property("rows in two parts", gradient_in_parts);
  }
  add_forward(cases, {{2, 0, 3}, 4, 9}, true).gradient("grouped-gemm.backward-weight", {"weight"}).label += " gradient of weight";
  // A rank that no token was sent to.
  add_forward(cases, {{0, 0, 0}, 5, 7}, false).property("packed", packed_is_equal("y", false)).label = "no rows";
  add_backward_x(cases, {{0, 0, 0}, 5, 7}, false).label = "no rows";
  add_backward_weight(cases, {{0, 0, 0}, 5, 7}, false).label = "no rows";
  add_backward_weight(cases, {{0, 0, 0}, 5, 7}, true).label = "no rows, accumulated";
  const Shape wide{{3, 0, 5}, 40, 50};
  add_forward(cases, wide, true).pitch("x", 72).pitch("y", 55).label = "strided";
  add_backward_x(cases, wide, false).pitch("d_y", 72).pitch("d_x", 55).label = "strided";
  add_backward_weight(cases, wide, true).pitch("d_y", 72).pitch("x", 55).label = "strided";
  // Infinities and NaN of one expert's rows and weights reach no other expert.
  const Shape mixed{{4, 4, 8}, 20, 33};
  cases.add("grouped-gemm.forward", "special values")
      .input("x", {16, 33}, Fill::special())
      .input("weight", {3, 20, 33})
      .input("expert_starts", {4}, mixed.starts(), DType::i32)
      .inout("y", {16, 20}, before(false))
      .tolerance(tolerance_of(33))
      .property("rows alone", rows_alone("x", "y"));
  cases.add("grouped-gemm.backward-weight", "special values")
      .input("d_y", {16, 20}, Fill::special())
      .input("x", {16, 33})
      .input("expert_starts", {4}, mixed.starts(), DType::i32)
      .inout("d_weight", {3, 20, 33}, before(false))
      .tolerance(tolerance_of(16));
  for (const bool backward : {false, true}) {
    cases.add("grouped-gemm.pack", backward ? "3x65x40 backward" : "3x65x40")
        .input("weight", {3, 65, 40})
        .output("packed", {3, panels_of(backward ? 40 : 65), backward ? 65 : 40, 32})
        .flag("backward", backward);
  }
  add_refusals(cases);
  add_benches(cases);
}

}  // namespace trilithon::grouped_gemm
