// Runs a case under one runtime, with every tensor between sentinels and every output poisoned.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/case.h"

namespace trilithon {

// A tensor in memory of its own: sentinel bytes before, behind and between its rows.
class GuardedTensor {
 public:
  // `shift` moves the first element away from 64-byte alignment by that many elements.
  GuardedTensor(const TensorSpec& spec, DType dtype, int64_t shift);

  const TensorSpec& spec() const { return spec_; }
  const TensorView& view() const { return view_; }
  int64_t elements() const { return view_.elements(); }

  void poison();
  void write(const std::vector<double>& values, bool raw_bits);
  double value(int64_t element) const;
  // The element's bits: equal values may differ in them (0 and -0).
  uint64_t bits(int64_t element) const;
  bool is_nan(int64_t element) const;
  // Coordinates in words: "[2, 69]".
  std::string coordinate(int64_t element) const;

  // Where a sentinel has been overwritten, in words; empty when none has.
  std::string damage() const;

 private:
  char* element_address(int64_t element) const;

  TensorSpec spec_;
  TensorView view_;
  std::vector<char> memory_;
  std::vector<bool> owned_;  // per byte: belongs to an element
};

struct Outcome {
  Status status;
  std::string damage;  // what was written that must not be
  std::map<std::string, std::unique_ptr<GuardedTensor>> tensors;

  const GuardedTensor& operator[](const std::string& name) const { return *tensors.at(name); }
  // The values of a tensor, for use as input of another call.
  std::vector<double> values(const std::string& name) const;
};

// Fills every tensor's values from its Fill; the stream of a tensor depends on seed, case and name only.
CaseData materialise(const Case& item, uint64_t seed);

// `in_double`: arguments of the working precision are f64. `shift` as in GuardedTensor.
Outcome execute(const OpEntry& entry, const CaseData& data, Runtime& runtime, bool in_double, int64_t shift);

// Compares bits of the named tensor (NaN equals NaN); empty when equal, else the first mismatch in words.
std::string compare_bits(const GuardedTensor& got, const GuardedTensor& want);

// As compare_bits, of rows [begin, end) of `want` with all of `got`.
std::string compare_rows(const GuardedTensor& got, const GuardedTensor& want, int64_t begin);

struct Closeness {
  double worst = 0;      // largest error, as Case::tolerance or relative_tolerance define it
  std::string mismatch;  // first element beyond the tolerance, in words
};

Closeness compare_values(const GuardedTensor& got, const GuardedTensor& want, double tolerance, bool relative);

}  // namespace trilithon
