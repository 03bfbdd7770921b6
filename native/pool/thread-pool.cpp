#include "pool/thread-pool.h"

#include <chrono>

#include "pool/float-environment.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trilithon {
namespace {

constexpr uint64_t inside_mask = 0xFFFF;
constexpr uint64_t open_bit = uint64_t{1} << 16;
constexpr int job_shift = 32;
constexpr auto spin_time = std::chrono::microseconds(15);

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// True when `condition` came true within the spin time.
template <typename Condition>
bool spin_until(Condition condition) {
  const auto give_up = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (condition()) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < give_up);
  return condition();
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  workers_.reserve(static_cast<size_t>(threads > 1 ? threads - 1 : 0));
  for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  job_opened_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::take_chunks(int thread) {
  const FloatEnvironment environment(profile_);
  for (;;) {
    if (abort_flag_ != nullptr && abort_flag_->load(std::memory_order_relaxed) != 0) {
      if (next_chunk_.load(std::memory_order_relaxed) < chunks_) aborted_.store(true, std::memory_order_relaxed);
      return;
    }
    const int64_t chunk = next_chunk_.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= chunks_) return;
    function_(context_, chunk, thread);
  }
}

bool ThreadPool::run(int64_t chunks, ChunkFunction function, void* context, Profile profile, const std::atomic<int32_t>* abort_flag) {
  chunks_ = chunks;
  function_ = function;
  context_ = context;
  profile_ = profile;
  abort_flag_ = abort_flag;
  next_chunk_.store(0, std::memory_order_relaxed);
  aborted_.store(false, std::memory_order_relaxed);
  const bool share = chunks > 1 && !workers_.empty();
  if (share) {
    const uint64_t job = (gate_.load(std::memory_order_relaxed) >> job_shift) + 1;
    gate_.store((job << job_shift) | open_bit);
    if (sleeping_.load() > 0) {
      // The empty critical section orders us after a worker that has seen the closed gate and is about to sleep.
      { const std::lock_guard lock(mutex_); }
      job_opened_.notify_all();
    }
  }
  take_chunks(0);
  if (share) close_job();
  return !aborted_.load(std::memory_order_relaxed);
}

void ThreadPool::close_job() {
  gate_.fetch_and(~open_bit);
  const auto empty = [this] { return (gate_.load() & inside_mask) == 0; };
  if (spin_until(empty)) return;
  std::unique_lock lock(mutex_);
  caller_sleeps_ = true;
  job_left_.wait(lock, empty);
  caller_sleeps_ = false;
}

void ThreadPool::work(int thread) {
  uint64_t last_job = 0;
  const auto job_waits = [this, &last_job] {
    const uint64_t gate = gate_.load();
    return stopping_.load() || ((gate & open_bit) != 0 && (gate >> job_shift) != last_job);
  };
  for (;;) {
    if (!spin_until(job_waits)) {
      std::unique_lock lock(mutex_);
      ++sleeping_;
      job_opened_.wait(lock, job_waits);
      --sleeping_;
    }
    if (stopping_.load()) return;
    uint64_t gate = gate_.load();
    bool entered = false;
    while (!entered && (gate & open_bit) != 0 && (gate >> job_shift) != last_job) entered = gate_.compare_exchange_weak(gate, gate + 1);
    if (!entered) continue;
    last_job = gate >> job_shift;
    take_chunks(thread);
    if ((gate_.fetch_sub(1) & inside_mask) == 1 && caller_sleeps_.load()) {
      { const std::lock_guard lock(mutex_); }
      job_left_.notify_one();
    }
  }
}

}  // namespace trilithon
