// Mode test: every case under every column, compared with the reference in double and with each other bit for bit.
#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "harness/columns.h"
#include "harness/execute.h"

namespace trilithon {
namespace {

class CaseTest {
 public:
  CaseTest(const Case& item, const OpEntry& entry, std::vector<Column>& columns, Column& reference, uint64_t seed)
      : item_(item), entry_(entry), columns_(columns), reference_(reference), seed_(seed), data_(materialise(item, seed)) {}

  // Empty when all holds; else where and what.
  std::string run() {
    Outcome want;
    std::string problem = checked("reference", data_, *reference_.runtime, !item_.float_reference, 0, want);
    if (!problem.empty()) return problem;

    Outcome plain;
    problem = checked("reference", data_, *reference_.runtime, false, 0, plain);
    if (problem.empty()) problem = close("reference", plain, want);
    if (!problem.empty()) return problem;

    Outcome first;
    for (size_t i = 0; i < columns_.size(); ++i) {
      Column& column = columns_[i];
      Outcome outcome;
      // Another placement in memory for each column: results must not depend on alignment.
      problem = checked(column.name, data_, *column.runtime, false, static_cast<int64_t>(i * 5 % 16), outcome);
      if (problem.empty()) problem = close(column.name, outcome, want);
      if (problem.empty() && i > 0) problem = equal(column.name + " against " + columns_[0].name, outcome, first);
      if (problem.empty()) problem = rows_alone(column, outcome);
      if (problem.empty()) problem = accumulated(column, outcome);
      if (problem.empty()) problem = in_place(column, outcome);
      if (problem.empty()) problem = properties(column);
      if (!problem.empty()) return problem;
      if (i == 0) first = std::move(outcome);
    }
    return {};
  }

  double worst() const { return worst_; }

 private:
  std::string checked(const std::string& column, const CaseData& data, Runtime& runtime, bool in_double, int64_t shift, Outcome& outcome) {
    outcome = execute(entry_, data, runtime, in_double, shift);
    if (!outcome.status.ok()) return column + ": " + outcome.status.failure().message();
    return outcome.damage.empty() ? "" : column + ": " + outcome.damage;
  }

  template <typename Visit>
  void for_outputs(const Outcome& outcome, Visit visit) {
    for (const ArgSpec& spec : entry_.args) {
      if (spec.is_tensor() && spec.is_output() && outcome.tensors.contains(spec.name)) visit(spec);
    }
  }

  std::string close(const std::string& column, const Outcome& got, const Outcome& want) {
    std::string problem;
    for_outputs(got, [&](const ArgSpec& spec) {
      const Closeness closeness = compare_values(got[spec.name], want[spec.name], item_.allowed, item_.relative);
      worst_ = std::max(worst_, closeness.worst);
      if (problem.empty() && !closeness.mismatch.empty()) problem = column + ": " + closeness.mismatch;
    });
    return problem;
  }

  std::string equal(const std::string& columns, const Outcome& got, const Outcome& want) {
    std::string problem;
    for_outputs(got, [&](const ArgSpec& spec) {
      if (!problem.empty()) return;
      const std::string difference = compare_bits(got[spec.name], want[spec.name]);
      if (!difference.empty()) problem = columns + ": " + difference;
    });
    return problem;
  }

  std::string rows_equal(const Column& column, const Outcome& whole, int64_t begin, int64_t end) {
    Outcome part;
    const std::string where = column.name + ", rows " + std::to_string(begin) + " to " + std::to_string(end) + " alone";
    std::string problem = checked(where, data_.rows(item_.row_names, begin, end), *column.runtime, false, 3, part);
    for (const std::string& name : item_.row_names) {
      if (!problem.empty()) break;
      const std::string difference = compare_rows(part[name], whole[name], begin);
      if (!difference.empty()) problem = where + ": " + difference;
    }
    return problem;
  }

  std::string rows_alone(const Column& column, const Outcome& whole) {
    if (item_.row_names.empty()) return {};
    const int64_t rows = data_.tensor(item_.row_names[0]).shape[0];
    Random random(seed_, item_.label);
    std::string problem;
    // Every row alone in small cases, a sample in large ones; then random parts.
    for (int64_t i = 0; i < std::min<int64_t>(rows, 12) && problem.empty(); ++i) {
      const int64_t row = rows <= 12 ? i : i == 0 ? 0 : i == 1 ? rows - 1 : random.below(rows);
      problem = rows_equal(column, whole, row, row + 1);
    }
    for (int64_t begin = 0; begin < rows && problem.empty();) {
      const int64_t end = std::min(rows, begin + 1 + random.below(std::max<int64_t>(1, rows / 2)));
      problem = rows_equal(column, whole, begin, end);
      begin = end;
    }
    return problem;
  }

  std::string accumulated(const Column& column, const Outcome& whole) {
    if (item_.accumulated.empty()) return {};
    const int64_t rows = data_.tensor(item_.row_names.at(0)).shape[0];
    const std::string where = column.name + ", accumulated over parts";
    for (int64_t cut = 1; cut < rows; ++cut) {
      Outcome head, tail;
      std::string problem = checked(where, data_.rows(item_.row_names, 0, cut), *column.runtime, false, 1, head);
      if (!problem.empty()) return problem;
      CaseData rest = data_.rows(item_.row_names, cut, rows);
      rest.scalars[item_.accumulate_flag] = 1;
      for (const std::string& name : item_.accumulated) rest.values[name] = head.values(name);
      problem = checked(where, rest, *column.runtime, false, 1, tail);
      for (const std::string& name : item_.accumulated) {
        if (!problem.empty()) return problem;
        const std::string difference = compare_bits(tail[name], whole[name]);
        if (!difference.empty()) problem = where + " cut at row " + std::to_string(cut) + ": " + difference;
      }
      if (!problem.empty()) return problem;
    }
    return {};
  }

  std::string in_place(const Column& column, const Outcome& apart) {
    if (item_.shared.empty()) return {};
    CaseData data = data_;
    data.shared = item_.shared;
    Outcome outcome;
    std::string problem = checked(column.name + ", in place", data, *column.runtime, false, 1, outcome);
    for (const auto& [output, input] : item_.shared) {
      if (!problem.empty()) return problem;
      const std::string difference = compare_bits(outcome[input], apart[output]);
      if (!difference.empty()) problem = column.name + ", " + output + " in place of " + difference;
    }
    return problem;
  }

  std::string properties(const Column& column) {
    for (const auto& [name, check] : item_.properties) {
      Random random(seed_, item_.label + name);
      const std::string difference = check(PropertyContext{entry_, data_, *column.runtime, random});
      if (!difference.empty()) return column.name + ", " + name + ": " + difference;
    }
    return {};
  }

  const Case& item_;
  const OpEntry& entry_;
  std::vector<Column>& columns_;
  Column& reference_;
  uint64_t seed_;
  CaseData data_;
  double worst_ = 0;
};

}  // namespace

std::string test_case(const Case& item, const OpEntry& entry, std::vector<Column>& columns, uint64_t seed) {
  Column reference = make_reference();
  return CaseTest(item, entry, columns, reference, seed).run();
}

Outcome PropertyContext::run(const CaseData& changed) const { return run(entry.name, changed); }

Outcome PropertyContext::run(const char* entry_name, const CaseData& changed) const {
  const OpEntry* found = find_op(entry_name);
  if (found == nullptr) throw std::runtime_error(std::string("no op entry ") + entry_name);
  Outcome outcome = execute(*found, changed, runtime, false, 2);
  if (!outcome.status.ok()) throw std::runtime_error(outcome.status.failure().message());
  if (!outcome.damage.empty()) throw std::runtime_error(std::string(entry_name) + ": " + outcome.damage);
  return outcome;
}

std::string PropertyContext::refusal(const CaseData& changed) const {
  const Outcome outcome = execute(entry, changed, runtime, false, 2);
  if (outcome.status.ok()) throw std::runtime_error("a call that must be refused succeeded");
  if (!outcome.damage.empty()) throw std::runtime_error(outcome.damage);
  return outcome.status.failure().message();
}

int run_tests(const Options& options) {
  // A harness that misses faults proves nothing, so it is tried on planted ones first.
  const std::string missed = self_test();
  if (!missed.empty()) {
    std::printf("FAIL  self-test: %s\n", missed.c_str());
    return 1;
  }
  std::vector<Column> columns;
  for (const Isa isa : usable_isas(options)) {
    // Threads beyond the cores are wanted here: they are about order, not speed.
    for (const int threads : options.threads.empty() ? std::vector<int>{1, 2, 3, 4} : options.threads)
      columns.push_back(make_column(isa, threads));
  }
  Column reference = make_reference();

  struct Tally {
    int passed = 0, failed = 0;
    double worst = 0;
  };
  std::map<std::string, Tally> tallies;
  int failures = 0;
  for (const Case& item : all_cases()) {
    const OpEntry* entry = find_op(item.entry.c_str());
    if (entry == nullptr) {
      std::printf("FAIL  %s [%s]: there is no such entry\n", item.entry.c_str(), item.label.c_str());
      ++failures;
      continue;
    }
    if (item.bench_only || !options.wants(entry->op)) continue;
    CaseTest test(item, *entry, columns, reference, options.seed);
    std::string problem;
    try {
      problem = test.run();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    Tally& tally = tallies[item.entry];
    tally.worst = std::max(tally.worst, test.worst());
    if (problem.empty()) {
      ++tally.passed;
      if (options.verbose) std::printf("ok    %s [%s], worst error %.2g\n", item.entry.c_str(), item.label.c_str(), test.worst());
    } else {
      ++tally.failed;
      ++failures;
      std::printf("FAIL  %s [%s] %s\n", item.entry.c_str(), item.label.c_str(), problem.c_str());
    }
  }
  std::string names;
  for (const Column& column : columns) names += (names.empty() ? "" : "; ") + column.name;
  std::printf("columns: %s\nseed %llu\n", names.c_str(), static_cast<unsigned long long>(options.seed));
  for (const auto& [entry, tally] : tallies) {
    std::printf("%-5s %-32s %3d cases, worst error %.2g\n", tally.failed == 0 ? "ok" : "FAIL", entry.c_str(), tally.passed + tally.failed,
                tally.worst);
  }
  return failures == 0 && !tallies.empty() ? 0 : 1;
}

}  // namespace trilithon
