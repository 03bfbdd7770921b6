// Sixteen lanes of float or int32 on every instruction set, and masks of sixteen.
//
// A kernel is written once against these functions and compiled per instruction set. Each function does the same IEEE
// operation in each lane everywhere, so scalar, AVX2 and AVX-512 give the same bits; what differs is how many registers a
// `F` takes. An op's <op>.simd.inl includes this and puts its code into KERNELS_BEGIN ... KERNELS_END.
//
// Everything lives in an unnamed namespace and is forced inline: a function with external linkage compiled here for AVX-512
// could be the copy that the linker keeps for all tables. For the same reason no header of the standard library that has
// code is included.
//
//   F zero(), set(x), load(p), load_n(p, n): lanes from n on are 0; store(p, v), store_n(p, n, v)
//   F add sub mul div fma(a,b,c)=a*b+c fnma(a,b,c)=c-a*b neg abs sqrt
//   F min(a,b)=a<b?a:b max(a,b)=a>b?a:b  (so a NaN in either gives b)
//   M lt le gt ge eq (false for NaN) is_nan first(n) and_ or_ not_; F select(m,a,b)=m?a:b; unsigned bits(m)
//   float sum(v), top(v): fixed tree over lanes, halves first: (l, l+8), (l, l+4), (l, l+2), (l, l+1)
//   I iset iload iload_n istore istore_n iadd isub imul iand ior ixor ishl<n> ishr<n> (logical) isar<n> ieq igt iselect
//     imin imax iota(); to_float(i), to_int(f): round to nearest even, |f| < 2^31; as_int, as_float: the same bits
//   unzip(x, y, even, odd): of 32 numbers in a row those at even and at odd places; zip(even, odd, x, y): back
//   I load_u8 load_u16 (n lanes) store_u8 store_u16 (low bits, n lanes); F load_f16, store_f16
#pragma once

#include <stdint.h>

#define TRILITHON_INLINE static inline __attribute__((always_inline))

#if defined(TRILITHON_ISA_AVX512)
#define TRILITHON_ISA_NS isa_avx512
#include <immintrin.h>
#elif defined(TRILITHON_ISA_AVX2)
#define TRILITHON_ISA_NS isa_avx2
#include <immintrin.h>
#else
#define TRILITHON_ISA_NS isa_scalar
#endif

#define KERNELS_BEGIN          \
  namespace trilithon {        \
  namespace TRILITHON_ISA_NS { \
  namespace {
#define KERNELS_END \
  }                 \
  }                 \
  }

#if defined(TRILITHON_ISA_AVX512)
#include "isa/vec-avx512.h"
#elif defined(TRILITHON_ISA_AVX2)
#include "isa/vec-avx2.h"
#else
#include "isa/vec-scalar.h"
#endif
