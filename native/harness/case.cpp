#include "harness/case.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace trilithon {
namespace {

Fill each(std::function<double(Random&)> next) {
  return {[next](std::vector<double>& values, const std::vector<int64_t>&, Random& random) {
    for (double& value : values) value = next(random);
  }};
}

}  // namespace

Fill Fill::normal(double mean, double deviation) {
  return each([=](Random& random) { return mean + deviation * random.normal(); });
}

Fill Fill::uniform(double low, double high) {
  return each([=](Random& random) { return low + (high - low) * random.uniform(); });
}

Fill Fill::constant(double value) {
  return each([=](Random&) { return value; });
}

Fill Fill::integers(int64_t low, int64_t below) {
  return each([=](Random& random) { return static_cast<double>(low + random.below(below - low)); });
}

Fill Fill::values(std::vector<double> list) {
  return {[list](std::vector<double>& values, const std::vector<int64_t>&, Random&) {
    if (list.size() != values.size()) {
      std::fprintf(stderr, "a case gives %zu values for %zu elements\n", list.size(), values.size());
      std::abort();
    }
    values = list;
  }};
}

Fill Fill::special() {
  return {[](std::vector<double>& values, const std::vector<int64_t>& shape, Random& random) {
    const int64_t rows = shape.empty() ? 1 : shape[0];
    const int64_t width = static_cast<int64_t>(values.size()) / std::max<int64_t>(1, rows);
    for (int64_t row = 0; row < rows; ++row) {
      double* start = values.data() + row * width;
      for (int64_t i = 0; i < width; ++i) start[i] = random.normal();
      const int64_t place = random.below(width);
      if (row % 8 == 1) std::fill(start, start + width, 0.0);
      if (row % 8 == 2) start[place] = std::numeric_limits<double>::infinity();
      if (row % 8 == 3) start[place] = std::numeric_limits<double>::quiet_NaN();
      if (row % 8 == 5) {
        for (int64_t i = 0; i < width; ++i) start[i] *= 1e-39;
      }
      if (row % 8 == 6) start[place] = -std::numeric_limits<double>::infinity();
    }
  }};
}

Fill Fill::codes() {
  Fill fill{[](std::vector<double>& values, const std::vector<int64_t>&, Random&) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  }};
  fill.raw_bits = true;
  return fill;
}

TensorSpec& CaseData::tensor(const std::string& name) {
  for (TensorSpec& spec : tensors) {
    if (spec.name == name) return spec;
  }
  std::fprintf(stderr, "a case names tensor %s, which it does not have\n", name.c_str());
  std::abort();
}

CaseData CaseData::rows(const std::vector<std::string>& names, int64_t begin, int64_t end) const {
  CaseData part = *this;
  for (const std::string& name : names) {
    TensorSpec& spec = part.tensor(name);
    const int64_t all = spec.shape[0];
    spec.shape[0] = end - begin;
    const auto found = part.values.find(name);
    if (found == part.values.end()) continue;
    std::vector<double>& list = found->second;
    const int64_t width = static_cast<int64_t>(list.size()) / all;
    list = std::vector<double>(list.begin() + begin * width, list.begin() + end * width);
  }
  return part;
}

Case& Case::input(std::string name, std::vector<int64_t> shape, Fill fill, DType dtype) {
  data.tensors.push_back({std::move(name), std::move(shape), dtype, std::move(fill)});
  return *this;
}

Case& Case::output(std::string name, std::vector<int64_t> shape, DType dtype) {
  data.tensors.push_back({std::move(name), std::move(shape), dtype, {}});
  return *this;
}

Case& Case::inout(std::string name, std::vector<int64_t> shape, Fill fill, DType dtype) {
  return input(std::move(name), std::move(shape), std::move(fill), dtype);
}

Case& Case::number(std::string name, double value) {
  data.scalars[std::move(name)] = value;
  return *this;
}

Case& Case::integer(std::string name, int64_t value) { return number(std::move(name), static_cast<double>(value)); }
Case& Case::flag(std::string name, bool value) { return number(std::move(name), value ? 1 : 0); }

Case& Case::pitch(const std::string& name, int64_t elements) {
  data.tensor(name).pitch = elements;
  return *this;
}

Case& Case::head_pitch(const std::string& name, int64_t elements) {
  data.tensor(name).head_pitch = elements;
  return *this;
}

Case& Case::rows(std::initializer_list<const char*> names) {
  row_names.assign(names.begin(), names.end());
  return *this;
}

Case& Case::accumulates(const char* flag, std::initializer_list<const char*> outputs) {
  accumulate_flag = flag;
  accumulated.assign(outputs.begin(), outputs.end());
  return *this;
}

Case& Case::strides(const std::string& name, std::vector<int64_t> elements) {
  data.tensor(name).strides = std::move(elements);
  return *this;
}

Case& Case::in_place(std::string output, std::string input) {
  shared[std::move(output)] = std::move(input);
  return *this;
}

Case& Case::tolerance(double value) {
  allowed = value;
  return *this;
}

Case& Case::relative_tolerance(double value) {
  relative = true;
  return tolerance(value);
}

Case& Case::in_float() {
  float_reference = true;
  return *this;
}

Case& Case::gradient(std::string backward_entry, std::initializer_list<const char*> inputs) {
  backward = std::move(backward_entry);
  differentiated.assign(inputs.begin(), inputs.end());
  return *this;
}

Case& Case::property(std::string name, Property check) {
  properties.emplace_back(std::move(name), std::move(check));
  return *this;
}

Case& Case::bench(double useful_flops, double moved_bytes) {
  bench_only = true;
  flops = useful_flops;
  bytes = moved_bytes;
  return *this;
}

std::string size_label(std::initializer_list<int64_t> sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

}  // namespace trilithon
