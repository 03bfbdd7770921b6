// Which time a benchmark takes.
#pragma once

#include <chrono>
#include <ctime>

namespace trilithon {

enum class Clock {
  wall,
  // Time that the threads of this process have computed, divided by how many there are. On a machine that others use as well
  // it leaves out the time that they take, and with it all waiting.
  processor,
};

inline double seconds(Clock clock, int threads) {
#if defined(CLOCK_PROCESS_CPUTIME_ID)
  if (clock == Clock::processor) {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec)) / threads;
  }
#endif
  (void)clock;
  (void)threads;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace trilithon
