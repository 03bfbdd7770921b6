// Lists of chosen keys for cases: indices [queries, top_k] and counts [queries] over packed documents.
#pragma once

#include <algorithm>
#include <numeric>

#include "harness/sequences.h"

namespace trilithon {

// Adds inputs `indices` and `counts`: per query min(top_k, position + 1) random positions, ascending, then -1.
inline Case& add_choice(Case& item, const std::vector<double>& starts, int64_t top_k) {
  std::vector<double> counts;
  for (size_t d = 0; d + 1 < starts.size(); ++d) {
    for (double position = 0; position < starts[d + 1] - starts[d]; ++position) {
      counts.push_back(std::min(static_cast<double>(top_k), position + 1));
    }
  }
  const Fill choice{[starts, top_k](std::vector<double>& values, const std::vector<int64_t>&, Random& random) {
    std::fill(values.begin(), values.end(), -1.0);
    int64_t row = 0;
    for (size_t d = 0; d + 1 < starts.size(); ++d) {
      for (int64_t position = 0; position < static_cast<int64_t>(starts[d + 1] - starts[d]); ++position, ++row) {
        std::vector<double> positions(static_cast<size_t>(position) + 1);
        std::iota(positions.begin(), positions.end(), 0.0);
        const int64_t count = std::min(top_k, position + 1);
        for (int64_t i = 0; i < count; ++i) {
          std::swap(positions[static_cast<size_t>(i)], positions[static_cast<size_t>(i + random.below(position + 1 - i))]);
        }
        std::sort(positions.begin(), positions.begin() + count);
        std::copy_n(positions.begin(), count, values.begin() + row * top_k);
      }
    }
  }};
  const int64_t queries = static_cast<int64_t>(starts.back());
  return item.input("indices", {queries, top_k}, choice, DType::i32).input("counts", {queries}, Fill::values(counts), DType::i32);
}

// Lists that hold every key give the bits of no list.
inline Property all_chosen_equals_all(std::vector<std::string> outputs) {
  return [outputs](const PropertyContext& context) -> std::string {
    CaseData all = context.data;
    sequences::drop(all, "indices");
    sequences::drop(all, "counts");
    const Outcome want = context.run(all), got = context.run(context.data);
    for (const std::string& name : outputs) {
      const std::string difference = compare_bits(got[name], want[name]);
      if (!difference.empty()) return difference;
    }
    return {};
  };
}

}  // namespace trilithon
