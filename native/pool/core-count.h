// How many cores this process may use: affinity mask and cgroup quota, not what the machine has.
#pragma once

#include <string>

namespace trilithon {

struct CoreCount {
  int logical = 1;   // hardware threads in the affinity mask
  int physical = 1;  // distinct cores among them
  // Cores' worth of time that the cgroup grants (2.5 = two and a half cores); 0 when there is no limit.
  double quota = 0;
  // What a thread pool uses unless TRILITHON_THREADS says otherwise: physical cores, cut to the quota, at least one.
  int usable = 1;
};

CoreCount count_cores();

struct ThreadChoice {
  int threads = 1;
  std::string reason;
  // Set when TRILITHON_THREADS is not a whole number from 1 to 1024.
  std::string problem;
};

// `forced` is the value of TRILITHON_THREADS, or null when it is not set.
ThreadChoice choose_threads(const CoreCount& cores, const char* forced);

}  // namespace trilithon
