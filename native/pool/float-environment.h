// The floating-point environment of a native call: set on entry in every thread that computes, put back on return.
//
// JavaScript engines and other addons may leave rounding or flush modes behind, and the bits of a profile depend on them.
#pragma once

#include <cstdint>

#include "include/profile.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace trilithon {

class FloatEnvironment {
 public:
  explicit FloatEnvironment(Profile profile) {
#if defined(__x86_64__)
    saved_ = _mm_getcsr();
    // All exceptions masked, round to nearest even; fp32 keeps denormals, bf16 flushes them as the tile unit does.
    _mm_setcsr(profile == Profile::fp32 ? 0x1F80u : 0x9FC0u);
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    saved_ = control;
    const uint64_t wanted = profile == Profile::fp32 ? 0 : (uint64_t{1} << 24);
    __asm__ volatile("msr fpcr, %0" ::"r"(wanted));
#else
    (void)profile;
#endif
  }

  ~FloatEnvironment() {
#if defined(__x86_64__)
    _mm_setcsr(static_cast<unsigned>(saved_));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(saved_));
#endif
  }

  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  uint64_t saved_ = 0;
};

}  // namespace trilithon
