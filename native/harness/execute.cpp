#include "harness/execute.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "include/float-formats.h"
#include "pool/float-environment.h"

namespace trilithon {
namespace {

constexpr int64_t guard_bytes = 256;
constexpr char sentinel = static_cast<char>(0xA5);

void store(char* at, DType dtype, double value, bool raw_bits) {
  const auto put = [at](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  switch (dtype) {
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::f64:
      return put(value);
    case DType::i32:
      return put(static_cast<int32_t>(value));
    case DType::i64:
      return put(static_cast<int64_t>(value));
    case DType::u32:
      return put(static_cast<uint32_t>(value));
    case DType::u16:
      return put(static_cast<uint16_t>(value));
    case DType::u8:
      return put(static_cast<uint8_t>(value));
    case DType::bf16:
      return put(raw_bits ? static_cast<uint16_t>(value) : float_to_bf16(static_cast<float>(value)));
    case DType::f16:
      return put(raw_bits ? static_cast<uint16_t>(value) : float_to_f16(static_cast<float>(value)));
    case DType::e4m3:
      return put(raw_bits ? static_cast<uint8_t>(value) : float_to_e4m3(static_cast<float>(value)));
    case DType::e5m2:
      return put(raw_bits ? static_cast<uint8_t>(value) : float_to_e5m2(static_cast<float>(value)));
  }
}

template <typename T>
T load(const char* at) {
  T typed;
  std::memcpy(&typed, at, sizeof typed);
  return typed;
}

std::string number(double value, uint64_t bits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.9g (bits %llx)", value, static_cast<unsigned long long>(bits));
  return text;
}

std::string mismatch(const GuardedTensor& got, int64_t i, const GuardedTensor& want, int64_t j) {
  return got.spec().name + got.coordinate(i) + " (element " + std::to_string(i) + "): got " + number(got.value(i), got.bits(i)) +
         ", want " + number(want.value(j), want.bits(j));
}

bool same(const GuardedTensor& got, int64_t i, const GuardedTensor& want, int64_t j) {
  // Which NaN an operation passes on is not defined alike everywhere, so any NaN equals any other.
  return got.bits(i) == want.bits(j) || (got.is_nan(i) && want.is_nan(j));
}

}  // namespace

GuardedTensor::GuardedTensor(const TensorSpec& spec, DType dtype, int64_t shift) : spec_(spec) {
  const int rank = static_cast<int>(spec.shape.size());
  view_ = contiguous_view(nullptr, dtype, rank, spec.shape.data());
  if (spec.head_pitch > 0) {
    view_.stride[1] = spec.head_pitch;
    view_.stride[0] = spec.head_pitch * spec.shape[1];
  }
  if (spec.pitch > 0) view_.stride[0] = spec.pitch;
  std::copy(spec.strides.begin(), spec.strides.end(), view_.stride);
  const int64_t size = static_cast<int64_t>(dtype_size(dtype));
  const int64_t span = span_bytes(view_);
  memory_.assign(static_cast<size_t>(span + 2 * guard_bytes + 64 + shift * size), sentinel);
  owned_.assign(memory_.size(), false);
  const int64_t misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory_.data()) % 64);
  view_.data = memory_.data() + guard_bytes + (64 - misaligned) % 64 + shift * size;
  for (int64_t i = 0; i < elements(); ++i) {
    const int64_t at = element_address(i) - memory_.data();
    std::fill(owned_.begin() + at, owned_.begin() + at + size, true);
  }
}

char* GuardedTensor::element_address(int64_t element) const {
  int64_t offset = 0;
  for (int dim = view_.rank - 1; dim >= 0; --dim) {
    offset += element % view_.shape[dim] * view_.stride[dim];
    element /= view_.shape[dim];
  }
  return static_cast<char*>(view_.data) + offset * static_cast<int64_t>(dtype_size(view_.dtype));
}

void GuardedTensor::poison() {
  for (int64_t i = 0; i < elements(); ++i) std::memset(element_address(i), 0xFF, dtype_size(view_.dtype));
}

void GuardedTensor::write(const std::vector<double>& values, bool raw_bits) {
  for (int64_t i = 0; i < elements(); ++i) store(element_address(i), view_.dtype, values[static_cast<size_t>(i)], raw_bits);
}

double GuardedTensor::value(int64_t element) const {
  const char* at = element_address(element);
  switch (view_.dtype) {
    case DType::f32:
      return load<float>(at);
    case DType::f64:
      return load<double>(at);
    case DType::i32:
      return load<int32_t>(at);
    case DType::i64:
      return static_cast<double>(load<int64_t>(at));
    case DType::u32:
      return load<uint32_t>(at);
    case DType::u16:
      return load<uint16_t>(at);
    case DType::u8:
      return load<uint8_t>(at);
    case DType::bf16:
      return bf16_to_float(load<uint16_t>(at));
    case DType::f16:
      return f16_to_float(load<uint16_t>(at));
    case DType::e4m3:
      return e4m3_to_float(load<uint8_t>(at));
    case DType::e5m2:
      return e5m2_to_float(load<uint8_t>(at));
  }
  return 0;
}

uint64_t GuardedTensor::bits(int64_t element) const {
  uint64_t word = 0;
  std::memcpy(&word, element_address(element), dtype_size(view_.dtype));
  return word;
}

bool GuardedTensor::is_nan(int64_t element) const { return std::isnan(value(element)); }

std::string GuardedTensor::coordinate(int64_t element) const {
  std::string text = "]";
  for (int dim = view_.rank - 1; dim >= 0; --dim) {
    text = (dim > 0 ? ", " : "[") + std::to_string(element % view_.shape[dim]) + text;
    element /= view_.shape[dim];
  }
  return view_.rank == 0 ? "[]" : text;
}

std::string GuardedTensor::damage() const {
  const char* start = static_cast<const char*>(view_.data);
  for (size_t i = 0; i < memory_.size(); ++i) {
    if (owned_[i] || memory_[i] == sentinel) continue;
    const int64_t offset = memory_.data() + i - start;
    const int64_t span = span_bytes(view_);
    if (offset < 0) return spec_.name + ": wrote " + std::to_string(-offset) + " bytes before its first element";
    if (offset >= span) return spec_.name + ": wrote " + std::to_string(offset - span) + " bytes behind its last element";
    return spec_.name + ": wrote into the gap between rows, at byte " + std::to_string(offset);
  }
  return {};
}

std::vector<double> Outcome::values(const std::string& name) const {
  const GuardedTensor& tensor = *tensors.at(name);
  std::vector<double> list(static_cast<size_t>(tensor.elements()));
  for (int64_t i = 0; i < tensor.elements(); ++i) list[static_cast<size_t>(i)] = tensor.value(i);
  return list;
}

CaseData materialise(const Case& item, uint64_t seed) {
  CaseData data = item.data;
  for (const TensorSpec& spec : data.tensors) {
    if (!spec.fill.apply) continue;
    int64_t count = 1;
    for (const int64_t dim : spec.shape) count *= dim;
    std::vector<double> values(static_cast<size_t>(count));
    Random random(seed, item.entry + "/" + item.label + "/" + spec.name);
    spec.fill.apply(values, spec.shape, random);
    if (spec.dtype == DType::f32) {
      // The reference in double computes from the very numbers that the kernels see.
      for (double& value : values) value = static_cast<double>(static_cast<float>(value));
    }
    data.values[spec.name] = std::move(values);
  }
  return data;
}

Outcome execute(const OpEntry& entry, const CaseData& data, Runtime& runtime, bool in_double, int64_t shift) {
  Outcome outcome;
  std::vector<ArgValue> args(entry.args.size());
  for (const TensorSpec& spec : data.tensors) {
    const int index = entry.find(spec.name.c_str());
    if (index < 0) throw std::runtime_error(std::string(entry.name) + " has no argument " + spec.name);
    if (data.shared.contains(spec.name)) continue;
    const bool working = entry.args[static_cast<size_t>(index)].dtypes == floats;
    auto tensor = std::make_unique<GuardedTensor>(spec, working && in_double ? DType::f64 : spec.dtype, shift);
    tensor->poison();
    const auto values = data.values.find(spec.name);
    if (values != data.values.end()) tensor->write(values->second, spec.fill.raw_bits);
    args[static_cast<size_t>(index)].tensor = tensor->view();
    outcome.tensors.emplace(spec.name, std::move(tensor));
  }
  for (const auto& [output, input] : data.shared) args[static_cast<size_t>(entry.find(output.c_str()))].tensor = outcome[input].view();
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const auto scalar = data.scalars.find(entry.args[i].name);
    if (entry.args[i].is_tensor() || scalar == data.scalars.end()) continue;
    args[i].number = scalar->second;
    args[i].integer = static_cast<int64_t>(scalar->second);
  }
  {
    const FloatEnvironment environment(runtime.profile());
    outcome.status = entry.run(entry, args.data(), runtime);
  }
  for (size_t i = 0; i < entry.args.size() && outcome.damage.empty(); ++i) {
    const ArgSpec& spec = entry.args[i];
    if (!spec.is_tensor() || !outcome.tensors.contains(spec.name)) continue;
    const GuardedTensor& tensor = outcome[spec.name];
    outcome.damage = tensor.damage();
    const bool overwritten =
        std::any_of(data.shared.begin(), data.shared.end(), [&](const auto& pair) { return pair.second == spec.name; });
    if (spec.kind != ArgKind::input || overwritten || !outcome.damage.empty()) continue;
    GuardedTensor before(tensor.spec(), tensor.view().dtype, shift);
    before.write(data.values.at(spec.name), tensor.spec().fill.raw_bits);
    const std::string changed = compare_bits(tensor, before);
    if (!changed.empty()) outcome.damage = "changed its input " + changed;
  }
  return outcome;
}

std::string compare_bits(const GuardedTensor& got, const GuardedTensor& want) { return compare_rows(got, want, 0); }

std::string compare_rows(const GuardedTensor& got, const GuardedTensor& want, int64_t begin) {
  const int64_t first = begin * want.view().row_elements();
  for (int64_t i = 0; i < got.elements(); ++i) {
    if (!same(got, i, want, first + i)) return mismatch(got, i, want, first + i);
  }
  return {};
}

Closeness compare_values(const GuardedTensor& got, const GuardedTensor& want, double tolerance, bool relative) {
  double squares = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double value = want.value(i);
    if (!std::isfinite(value)) continue;
    squares += value * value;
    ++finite;
  }
  const double scale = relative ? 0x1p-126 : finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0;
  Closeness result;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double g = got.value(i), w = want.value(i);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    const double unit = std::max(std::fabs(w), scale);
    const double error = std::isfinite(g) && std::isfinite(w) && unit > 0 ? std::fabs(g - w) / unit : INFINITY;
    result.worst = std::max(result.worst, error);
    if (error > tolerance && result.mismatch.empty()) result.mismatch = mismatch(got, i, want, i);
  }
  return result;
}

}  // namespace trilithon
