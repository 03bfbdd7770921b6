// Ties an op to its kernels, one table per profile and instruction set.
//
// In <op>.h, inside the op's namespace:   struct Kernels { ... };  TRILITHON_DECLARE_KERNELS
// In <op>.cpp, at namespace scope:        TRILITHON_DEFINE_KERNELS(rms_norm)
// In <op>.simd.inl, at namespace scope:   TRILITHON_EXPORT_KERNELS(rms_norm, (forward, backward))
#pragma once

#include "include/profile.h"
#include "isa/isa.h"

// The table for a profile and an instruction set that runs here. Every profile that the runtime accepts has one.
#define TRILITHON_DECLARE_KERNELS const Kernels& kernels(::trilithon::Profile profile, ::trilithon::Isa isa);

// Each SIMD object defines its table under a name of its own; a build for another processor has the scalar one only.
#if defined(__x86_64__)
#define TRILITHON_DEFINE_KERNELS(op)                                           \
  namespace trilithon {                                                        \
  extern const op::Kernels op##_kernels_isa_scalar;                            \
  extern const op::Kernels op##_kernels_isa_avx2;                              \
  extern const op::Kernels op##_kernels_isa_avx512;                            \
  const op::Kernels& op::kernels(Profile, Isa isa) {                           \
    if (isa == Isa::avx512) return op##_kernels_isa_avx512;                    \
    return isa == Isa::avx2 ? op##_kernels_isa_avx2 : op##_kernels_isa_scalar; \
  }                                                                            \
  }
#else
#define TRILITHON_DEFINE_KERNELS(op)                                               \
  namespace trilithon {                                                            \
  extern const op::Kernels op##_kernels_isa_scalar;                                \
  const op::Kernels& op::kernels(Profile, Isa) { return op##_kernels_isa_scalar; } \
  }
#endif

#define TRILITHON_JOIN_(a, b, c) a##b##c
#define TRILITHON_JOIN(a, b, c) TRILITHON_JOIN_(a, b, c)
#define TRILITHON_UNWRAP(...) __VA_ARGS__

// `functions` in parentheses, in the order of the members of Kernels; they are found in the unnamed namespace of the table.
#define TRILITHON_EXPORT_KERNELS(op, functions)                                                     \
  namespace trilithon {                                                                             \
  using namespace TRILITHON_ISA_NS;                                                                 \
  extern const op::Kernels TRILITHON_JOIN(op, _kernels_, TRILITHON_ISA_NS);                         \
  const op::Kernels TRILITHON_JOIN(op, _kernels_, TRILITHON_ISA_NS) = {TRILITHON_UNWRAP functions}; \
  }
