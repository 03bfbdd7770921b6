// The columns that the harness compares: which instruction sets run here, and under how many threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pool/runtime.h"

namespace trilithon {

struct Options {
  std::string mode = "test";
  std::vector<std::string> ops;  // empty: all
  std::vector<Isa> isas;         // empty: all that run here
  std::vector<int> threads;
  uint64_t seed = 1;
  bool verbose = false;
  bool json = false;

  bool wants(const char* op) const;
};

struct Column {
  std::string name;  // "avx512, 2 threads"
  std::unique_ptr<Runtime> runtime;
};

// Instruction sets that were asked for and run here; says on standard error which do not, and why.
std::vector<Isa> usable_isas(const Options& options);

Column make_column(Isa isa, int threads);
Column make_reference();

class Case;
struct OpEntry;

// Runs one case under the columns; empty when everything holds.
std::string test_case(const Case& item, const OpEntry& entry, std::vector<Column>& columns, uint64_t seed);

// Plants one fault at a time in an op and sees that `test_case` reports it; tries the thread pool, the arena and the handles.
// Empty when all is as it must be.
std::string self_test();

int run_tests(const Options& options);
int run_gradients(const Options& options);
int run_benchmarks(const Options& options);

}  // namespace trilithon
