// Runtime: what an op needs besides its arguments. Profile, kernel table, threads, scratch memory, abort flag.
//
// One per JavaScript environment; the harness makes one per column that it compares.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "include/profile.h"
#include "include/status.h"
#include "include/tensor-view.h"
#include "isa/dispatch.h"
#include "pool/pages.h"
#include "pool/thread-pool.h"

namespace trilithon {

// The scalar truth, or the fast kernels of one instruction set.
enum class Backend : uint8_t { reference, kernels };

struct RuntimeOptions {
  Profile profile = Profile::fp32;
  Backend backend = Backend::kernels;
  Isa isa = Isa::scalar;
  int threads = 1;
};

class Runtime {
 public:
  explicit Runtime(const RuntimeOptions& options) : options_(options), scratch_(static_cast<size_t>(options.threads) + 1) {}

  Profile profile() const { return options_.profile; }
  Isa isa() const { return options_.isa; }
  int threads() const { return options_.threads; }
  const RuntimeOptions& options() const { return options_; }

  // f64 exists only as reference: it is there for gradient checks.
  bool use_reference(DType working) const { return options_.backend == Backend::reference || working == DType::f64; }

  // Polled before each chunk of work; nonzero stops the op with NATIVE_ABORTED. Null: never.
  void set_abort_flag(const std::atomic<int32_t>* flag) { abort_flag_ = flag; }

  // Items per chunk such that a chunk moves or computes enough to be worth handing to a thread. `cost` is bytes moved or
  // flops per item, whichever is larger.
  static int64_t grain(int64_t cost) { return std::max<int64_t>(1, chunk_cost / std::max<int64_t>(1, cost)); }

  // Splits [0, count) into chunks of `grain` items and calls body(begin, end, thread) for each, on several threads when
  // there is more than one chunk. The body must not depend on where the cuts are.
  template <typename Body>
  Status parallel(const char* op, int64_t count, int64_t grain, Body&& body) {
    if (count <= 0) return {};
    struct Job {
      Body& body;
      int64_t count, grain;
    } job{body, count, grain};
    const auto chunk = [](void* context, int64_t index, int thread) {
      Job& self = *static_cast<Job*>(context);
      const int64_t begin = index * self.grain;
      self.body(begin, std::min(begin + self.grain, self.count), thread);
    };
    if (pool().run((count + grain - 1) / grain, chunk, &job, options_.profile, abort_flag_)) return {};
    return Status({ErrorCode::aborted, op, "", "to run to its end", "an abort"});
  }

  // Scratch that lasts until the op returns; one region per thread (0 to threads()-1) and one shared by all (-1). The memory
  // stays with the runtime and only grows, so steady state allocates nothing. Not initialised; aligned to 64 bytes.
  // Regions of threads may be asked for inside `parallel`, by that thread. Null when memory is exhausted.
  void* scratch(int thread, size_t bytes);

  // As `scratch`, but a missing region is a failure in words.
  Status scratch_for(const char* op, int thread, size_t bytes, void*& data);

 private:
  static constexpr int64_t chunk_cost = 256 * 1024;

  ThreadPool& pool() {
    // Threads start with the first op, not with the import.
    if (!pool_) pool_ = std::make_unique<ThreadPool>(options_.threads);
    return *pool_;
  }

  RuntimeOptions options_;
  std::vector<Pages> scratch_;
  std::unique_ptr<ThreadPool> pool_;
  const std::atomic<int32_t>* abort_flag_ = nullptr;
};

// Calls f.operator()<float>() or <double>() for the working precision of a call.
template <typename Function>
void with_floating(DType dtype, Function&& function) {
  if (dtype == DType::f64) {
    function.template operator()<double>();
  } else {
    function.template operator()<float>();
  }
}

}  // namespace trilithon
