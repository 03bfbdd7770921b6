#include "isa/cpu-features.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace trilithon {
namespace {

#if defined(__x86_64__)

struct Leaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf cpuid(unsigned leaf, unsigned subleaf = 0) {
  Leaf r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

bool bit(unsigned word, int index) { return (word >> index) & 1u; }

uint64_t enabled_register_state() {
  unsigned low = 0, high = 0;
  // The instruction by its bytes: the xgetbv intrinsic would need the whole file compiled with -mxsave.
  __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

// Linux hands out the 8 KiB of tile registers per process on request only (arch_prctl ARCH_REQ_XCOMP_PERM, feature 18).
bool request_amx_permission(char* reason, size_t reason_size) {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr int request_permission = 0x1023;
  constexpr int tile_data = 18;
  if (syscall(SYS_arch_prctl, request_permission, tile_data) == 0) return true;
  std::snprintf(reason, reason_size, "the kernel refused AMX tile registers: %s", std::strerror(errno));
  return false;
#else
  std::snprintf(reason, reason_size, "AMX tile registers can only be requested on Linux");
  return false;
#endif
}

void read_names(CpuFeatures& f) {
  const Leaf v = cpuid(0);
  std::memcpy(f.vendor, &v.ebx, 4);
  std::memcpy(f.vendor + 4, &v.edx, 4);
  std::memcpy(f.vendor + 8, &v.ecx, 4);
  if (cpuid(0x80000000u).eax < 0x80000004u) return;
  char text[49] = {};
  for (unsigned i = 0; i < 3; ++i) {
    const Leaf part = cpuid(0x80000002u + i);
    std::memcpy(text + 16 * i, &part, 16);
  }
  const char* start = text;
  while (*start == ' ') ++start;
  std::snprintf(f.model, sizeof f.model, "%s", start);
  for (size_t n = std::strlen(f.model); n > 0 && f.model[n - 1] == ' '; --n) f.model[n - 1] = '\0';
}

CpuFeatures detect() {
  CpuFeatures f;
  read_names(f);
  const Leaf one = cpuid(1);
  f.sse4_2 = bit(one.ecx, 20);
  const bool os_saves_registers = bit(one.ecx, 27);
  const uint64_t state = os_saves_registers ? enabled_register_state() : 0;
  const bool ymm = (state & 0x6) == 0x6;
  const bool zmm = (state & 0xe6) == 0xe6;
  const bool tiles = (state & 0x60000) == 0x60000;

  if (cpuid(0).eax < 7) return f;
  const Leaf seven = cpuid(7, 0);
  const Leaf seven_one = seven.eax >= 1 ? cpuid(7, 1) : Leaf{};
  if (ymm) {
    f.fma = bit(one.ecx, 12);
    f.f16c = bit(one.ecx, 29);
    f.avx2 = bit(seven.ebx, 5);
  }
  if (zmm) {
    f.avx512f = bit(seven.ebx, 16);
    f.avx512dq = bit(seven.ebx, 17);
    f.avx512bw = bit(seven.ebx, 30);
    f.avx512vl = bit(seven.ebx, 31);
    f.avx512vnni = bit(seven.ecx, 11);
    f.avx512bf16 = bit(seven_one.eax, 5);
    f.avx512fp16 = bit(seven.edx, 23);
  }
  const bool has_amx = bit(seven.edx, 24);
  if (has_amx && !tiles) {
    std::snprintf(f.amx_reason, sizeof f.amx_reason, "the operating system does not save AMX tile registers");
  } else if (has_amx && request_amx_permission(f.amx_reason, sizeof f.amx_reason)) {
    f.amx_tile = true;
    f.amx_bf16 = bit(seven.edx, 22);
    f.amx_int8 = bit(seven.edx, 25);
  }
  return f;
}

#else

CpuFeatures detect() { return CpuFeatures{}; }

#endif

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

}  // namespace trilithon
