#include "pool/core-count.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#endif

namespace trilithon {
namespace {

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
#if defined(__linux__)
  // The kernel refuses a mask smaller than its own, so grow until it fits.
  for (int capacity = 1024; capacity <= 1 << 18 && cpus.empty(); capacity *= 2) {
    cpu_set_t* mask = CPU_ALLOC(capacity);
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    if (mask != nullptr && sched_getaffinity(0, bytes, mask) == 0) {
      for (int cpu = 0; cpu < capacity; ++cpu) {
        if (CPU_ISSET_S(cpu, bytes, mask)) cpus.push_back(cpu);
      }
    }
    if (mask != nullptr) CPU_FREE(mask);
  }
#endif
  if (cpus.empty()) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    for (int cpu = 0; cpu < std::max(1L, online); ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

int count_physical(const std::vector<int>& cpus) {
  std::set<std::pair<int, int>> cores;
  for (int cpu : cpus) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const std::string package = read_text(folder + "physical_package_id");
    const std::string core = read_text(folder + "core_id");
    // Without topology every hardware thread counts as a core.
    if (package.empty() || core.empty()) return static_cast<int>(cpus.size());
    cores.insert({std::atoi(package.c_str()), std::atoi(core.c_str())});
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

// A limit on any ancestor holds, so take the smallest on the way up.
double smallest_quota(const std::string& mount, std::string group, bool version_two) {
  double quota = 0;
  for (;;) {
    double limit = 0;
    if (version_two) {
      long long budget = 0, period = 0;
      if (std::sscanf(read_text(mount + group + "/cpu.max").c_str(), "%lld %lld", &budget, &period) == 2 && period > 0) {
        limit = static_cast<double>(budget) / static_cast<double>(period);
      }
    } else {
      const double budget = std::atof(read_text(mount + group + "/cpu.cfs_quota_us").c_str());
      const double period = std::atof(read_text(mount + group + "/cpu.cfs_period_us").c_str());
      if (budget > 0 && period > 0) limit = budget / period;
    }
    if (limit > 0) quota = quota > 0 ? std::min(quota, limit) : limit;
    if (group.empty() || group == "/") return quota;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

double cgroup_quota() {
  double quota = 0;
  std::stringstream groups(read_text("/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    double limit = 0;
    if (controllers == ",,") {
      limit = smallest_quota("/sys/fs/cgroup", group, true);
    } else if (controllers.find(",cpu,") != std::string::npos) {
      limit = smallest_quota("/sys/fs/cgroup/cpu", group, false);
    }
    if (limit > 0) quota = quota > 0 ? std::min(quota, limit) : limit;
  }
  return quota;
}

}  // namespace

CoreCount count_cores() {
  CoreCount count;
  const std::vector<int> cpus = allowed_cpus();
  count.logical = static_cast<int>(cpus.size());
  count.physical = count_physical(cpus);
  count.quota = cgroup_quota();
  count.usable = count.physical;
  if (count.quota > 0) count.usable = std::min(count.usable, static_cast<int>(std::floor(count.quota)));
  count.usable = std::max(1, count.usable);
  return count;
}

ThreadChoice choose_threads(const CoreCount& cores, const char* forced) {
  ThreadChoice choice;
  if (forced == nullptr || *forced == '\0') {
    choice.threads = cores.usable;
    choice.reason =
        cores.quota > 0 && cores.usable < cores.physical ? "whole cores in the cgroup's quota" : "physical cores this process may use";
    return choice;
  }
  char* end = nullptr;
  const long threads = std::strtol(forced, &end, 10);
  if (*end != '\0' || threads < 1 || threads > 1024) {
    choice.problem = std::string("TRILITHON_THREADS=") + forced + " is not a whole number from 1 to 1024";
    return choice;
  }
  choice.threads = static_cast<int>(threads);
  choice.reason = std::string("forced by TRILITHON_THREADS=") + forced;
  return choice;
}

}  // namespace trilithon
