#pragma once

#include <cmath>
#include <limits>

#include "harness/execute.h"

namespace trilithon::casts {

// A format by its definition, apart from the integer tricks that kernels and reference use.
struct Format {
  DType dtype;
  int exponent_bits, mantissa_bits;

  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  bool saturates() const { return bits() == 8; }
  // Codes of magnitudes from 0 to the largest finite value, in ascending order of value.
  int64_t finite() const {
    const int64_t below_top_exponent = ((int64_t{1} << exponent_bits) - 1) << mantissa_bits;
    return dtype == DType::e4m3 ? 0x7F : below_top_exponent;
  }
  double magnitude(int64_t code) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int64_t exponent = code >> mantissa_bits, mantissa = code & ((int64_t{1} << mantissa_bits) - 1);
    if (exponent == 0) return std::ldexp(static_cast<double>(mantissa), 1 - bias - mantissa_bits);
    return std::ldexp(static_cast<double>(mantissa + (int64_t{1} << mantissa_bits)), static_cast<int>(exponent) - bias - mantissa_bits);
  }
  // What a value that is not NaN becomes: the nearest magnitude, of two equally near the one with an even code.
  int64_t nearest(double value) const {
    const int64_t sign = std::signbit(value) ? int64_t{1} << (bits() - 1) : 0;
    const double wanted = std::fabs(value);
    int64_t low = 0, high = finite();  // magnitude(high) is one step beyond the largest: infinity, or out of range
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (magnitude(middle) <= wanted ? low : high) = middle;
    }
    const double below = wanted - magnitude(low), above = magnitude(high) - wanted;
    int64_t code = below < above || (below == above && low % 2 == 0) ? low : high;
    if (saturates() && code >= finite()) code = finite() - 1;
    return sign | code;
  }
};

inline constexpr Format formats[] = {{DType::bf16, 8, 7}, {DType::f16, 5, 10}, {DType::e4m3, 4, 3}, {DType::e5m2, 5, 2}};

// Every midpoint between neighbours, the floats on both sides of it, and every value itself; both signs; then what lies outside.
inline Fill borders(const Format& format) {
  return {[format](std::vector<double>& values, const std::vector<int64_t>&, Random&) {
    const float infinity = std::numeric_limits<float>::infinity();
    size_t i = 0;
    const auto put = [&](float value) {
      values[i++] = value;
      values[i++] = -value;
    };
    for (int64_t code = 0; code < format.finite(); ++code) {
      const float middle = static_cast<float>((format.magnitude(code) + format.magnitude(code + 1)) / 2);
      put(middle);
      put(std::nextafterf(middle, 0));
      put(std::nextafterf(middle, infinity));
      put(static_cast<float>(format.magnitude(code)));
    }
    for (const float value : {infinity, std::numeric_limits<float>::max(), 1e-45f, std::numeric_limits<float>::quiet_NaN()}) put(value);
  }};
}

inline std::string check_nearest(const PropertyContext& context, const Format& format) {
  const Outcome outcome = context.run(context.data);
  const GuardedTensor& y = outcome["y"];
  const std::vector<double>& x = context.data.values.at("x");
  for (int64_t i = 0; i < y.elements(); ++i) {
    const double value = x[static_cast<size_t>(i)];
    if (std::isnan(value) ? y.is_nan(i) : y.bits(i) == static_cast<uint64_t>(format.nearest(value))) continue;
    return "y" + y.coordinate(i) + " of " + std::to_string(value) + " has the bits " + std::to_string(y.bits(i)) + ", the nearest are " +
           std::to_string(format.nearest(value));
  }
  return "";
}

inline std::string check_values(const PropertyContext& context, const Format& format) {
  const Outcome outcome = context.run(context.data);
  const GuardedTensor& y = outcome["y"];
  const int64_t sign = int64_t{1} << (format.bits() - 1);
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t code = i & (sign - 1);
    double want = code < format.finite() ? format.magnitude(code) : std::numeric_limits<double>::quiet_NaN();
    if (code == format.finite() && format.dtype != DType::e4m3) want = std::numeric_limits<double>::infinity();
    if ((i & sign) != 0) want = -want;
    const bool equal = std::isnan(want) ? y.is_nan(i) : y.value(i) == want && std::signbit(y.value(i)) == std::signbit(want);
    if (!equal) return "code " + std::to_string(i) + " is " + std::to_string(y.value(i)) + ", by definition " + std::to_string(want);
  }
  return "";
}

inline void add_cases(CaseList& cases) {
  for (const Format& format : formats) {
    const std::string name = dtype_name(format.dtype);
    const int64_t codes = int64_t{1} << format.bits();
    cases.add("casts.widen", name + ", all codes")
        .input("x", {codes}, Fill::codes(), format.dtype)
        .output("y", {codes})
        .property("the definition of the format", [format](const PropertyContext& context) { return check_values(context, format); });
    cases.add("casts.narrow", name + ", all midpoints")
        .input("x", {8 * format.finite() + 8}, borders(format))
        .output("y", {8 * format.finite() + 8}, format.dtype)
        .property("the nearest value", [format](const PropertyContext& context) { return check_nearest(context, format); });
    // Parts of every length.
    cases.add("casts.narrow", name + ", rows").input("x", {9, 5}).output("y", {9, 5}, format.dtype).rows({"x", "y"});
    cases.add("casts.widen", name + ", rows").input("x", {37}, Fill::normal(), format.dtype).output("y", {37}).rows({"x", "y"});
  }
  cases.add("casts.narrow", "nothing")
      .input("x", {0, 3})
      .output("y", {0, 3}, DType::bf16)
      .property("another shape", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        data.tensor("y").shape = {3, 0};
        const std::string text = context.refusal(data);
        return text == "casts.narrow: y: expected shape [0, 3] as in x, given [3, 0]" ? "" : text;
      });

  struct Blocks {
    int64_t rows, columns, block_rows;
    bool power_of_two;
  };
  for (const Blocks b : {Blocks{1, 1, 1, false},
                         {3, 128, 1, true},
                         {5, 200, 1, false},
                         {7, 257, 1, true},
                         {1, 40, 128, false},
                         {130, 200, 128, true},
                         {128, 128, 128, false}}) {
    const std::string label = size_label({b.rows, b.columns, b.block_rows}) + (b.power_of_two ? " powers of two" : "");
    const int64_t down = (b.rows + b.block_rows - 1) / b.block_rows, across = (b.columns + 127) / 128;
    // Sizes from row to row and from column to column differ a lot, as outliers of activations do.
    const Fill uneven{[](std::vector<double>& values, const std::vector<int64_t>&, Random& random) {
      for (double& value : values) value = random.normal() * std::exp2(static_cast<double>(random.below(12)));
    }};
    Case& quantize = cases.add("casts.quantize", label);
    quantize.input("x", {b.rows, b.columns}, uneven)
        .output("codes", {b.rows, b.columns}, DType::e4m3)
        .output("scales", {down, across})
        .integer("block_rows", b.block_rows)
        .number("amax_floor", 1e-4)
        .flag("power_of_two", b.power_of_two)
        .property("there and back within a step", [b](const PropertyContext& context) -> std::string {
          const Outcome quantized = context.run(context.data);
          const std::vector<double>& x = context.data.values.at("x");
          for (int64_t i = 0; i < quantized["codes"].elements(); ++i) {
            const double scale = quantized["scales"].value(i / b.columns / b.block_rows * ((b.columns + 127) / 128) + i % b.columns / 128);
            const double back = quantized["codes"].value(i) * scale, want = x[static_cast<size_t>(i)];
            // Three bits of mantissa: half a step is 1/16 of the value, or half of 2^-9 of the scale below its normal range.
            const double allowed = std::max(std::fabs(want) / 16, scale * 0x1p-10) * 1.000001;
            if (!(std::fabs(back - want) <= allowed)) return "element " + std::to_string(i) + " came back as " + std::to_string(back);
            int exponent = 0;
            if (b.power_of_two && std::frexp(scale, &exponent) != 0.5) return std::to_string(scale) + " is not a power of two";
          }
          return "";
        });
    if (b.block_rows == 1) quantize.rows({"x", "codes", "scales"});
    cases.add("casts.dequantize", label)
        .input("codes", {b.rows, b.columns}, Fill::normal(0, 100), DType::e4m3)
        .input("scales", {down, across}, Fill::uniform(0.01, 2))
        .output("y", {b.rows, b.columns})
        .integer("block_rows", b.block_rows);
  }
  cases.add("casts.quantize", "strided, special values")
      .input("x", {8, 150}, Fill::special())
      .pitch("x", 160)
      .output("codes", {8, 150}, DType::e4m3)
      .pitch("codes", 152)
      .output("scales", {8, 2})
      .integer("block_rows", 1)
      .number("amax_floor", 1e-10)
      .flag("power_of_two", true)
      .rows({"x", "codes", "scales"})
      .property("refused blocks", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        data.scalars["block_rows"] = 64;
        if (const std::string text = context.refusal(data); text != "casts.quantize: block_rows: expected 1 or 128, given 64") return text;
        data.scalars["block_rows"] = 1;
        data.scalars["amax_floor"] = 0;
        return context.refusal(data).find("amax_floor: expected a number >= 2^-100") == std::string::npos ? "zero was accepted" : "";
      });

  const int64_t elements = 4 << 20;
  for (const Format& format : formats) {
    const double bytes = static_cast<double>(elements) * (4 + format.bits() / 8);
    cases.add("casts.narrow", dtype_name(format.dtype)).input("x", {elements}).output("y", {elements}, format.dtype).bench(0, bytes);
    cases.add("casts.widen", dtype_name(format.dtype))
        .input("x", {elements}, Fill::normal(), format.dtype)
        .output("y", {elements})
        .bench(0, bytes);
  }
  for (const int64_t block_rows : {int64_t{1}, int64_t{128}}) {
    cases.add("casts.quantize", "2048x2048, blocks of " + std::to_string(block_rows) + " rows")
        .input("x", {2048, 2048})
        .output("codes", {2048, 2048}, DType::e4m3)
        .output("scales", {2048 / block_rows, 16})
        .integer("block_rows", block_rows)
        .number("amax_floor", 1e-4)
        .flag("power_of_two", false)
        .bench(0, 5.0 * 2048 * 2048);
  }
}

}  // namespace trilithon::casts
