// ThreadPool: the caller and N-1 workers take chunks of one job until none is left.
//
// Who computes a chunk is decided at run time; what a chunk computes is not, so results never depend on the thread count.
// A waiting thread spins for a few microseconds and then sleeps: on a shared machine long spinning starves the thread that
// has the work. A job that is over before a sleeping worker wakes up does not wait for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "include/profile.h"

namespace trilithon {

class ThreadPool {
 public:
  // Computes chunk `chunk` as thread `thread` (0 is the caller).
  using ChunkFunction = void (*)(void* context, int64_t chunk, int thread);

  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs every chunk once and returns when all are done. False when `abort_flag` (may be null) became nonzero before all
  // chunks were taken; the flag is looked at before each chunk. One job at a time: calls come from one thread.
  bool run(int64_t chunks, ChunkFunction function, void* context, Profile profile, const std::atomic<int32_t>* abort_flag);

 private:
  void work(int thread);
  void take_chunks(int thread);
  void close_job();

  // One word that says whether a job may be entered and how many workers are inside:
  // bits 0-15 workers inside, bit 16 open, bits 32-63 number of the job.
  std::atomic<uint64_t> gate_{0};
  std::atomic<int64_t> next_chunk_{0};
  std::atomic<bool> aborted_{false};
  std::atomic<int> sleeping_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> stopping_{false};

  // The job: written while the gate is closed and nobody is inside.
  int64_t chunks_ = 0;
  ChunkFunction function_ = nullptr;
  void* context_ = nullptr;
  Profile profile_ = Profile::fp32;
  const std::atomic<int32_t>* abort_flag_ = nullptr;

  std::mutex mutex_;
  std::condition_variable job_opened_;
  std::condition_variable job_left_;
  std::vector<std::thread> workers_;
};

}  // namespace trilithon
