// Transposes sixteen vectors of sixteen lanes in registers: afterwards lane i of v[j] is what lane j of v[i] was.
#pragma once

#include "isa/vec.h"

KERNELS_BEGIN

#if defined(TRILITHON_ISA_AVX512)

TRILITHON_INLINE __m512 unpack_pairs_low(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
TRILITHON_INLINE __m512 unpack_pairs_high(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

TRILITHON_INLINE void transpose(F (&v)[16]) {
  F t[16];
  // Within each quarter of a register: four rows by four lanes.
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const F low01 = _mm512_unpacklo_ps(v[i], v[i + 1]), high01 = _mm512_unpackhi_ps(v[i], v[i + 1]);
    const F low23 = _mm512_unpacklo_ps(v[i + 2], v[i + 3]), high23 = _mm512_unpackhi_ps(v[i + 2], v[i + 3]);
    t[i] = unpack_pairs_low(low01, low23);
    t[i + 1] = unpack_pairs_high(low01, low23);
    t[i + 2] = unpack_pairs_low(high01, high23);
    t[i + 3] = unpack_pairs_high(high01, high23);
  }
  // Quarters of the four groups of rows change places.
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const F even01 = _mm512_shuffle_f32x4(t[j], t[j + 4], 0x88), odd01 = _mm512_shuffle_f32x4(t[j], t[j + 4], 0xDD);
    const F even23 = _mm512_shuffle_f32x4(t[j + 8], t[j + 12], 0x88), odd23 = _mm512_shuffle_f32x4(t[j + 8], t[j + 12], 0xDD);
    v[j] = _mm512_shuffle_f32x4(even01, even23, 0x88);
    v[j + 4] = _mm512_shuffle_f32x4(odd01, odd23, 0x88);
    v[j + 8] = _mm512_shuffle_f32x4(even01, even23, 0xDD);
    v[j + 12] = _mm512_shuffle_f32x4(odd01, odd23, 0xDD);
  }
}

#elif defined(TRILITHON_ISA_AVX2)

TRILITHON_INLINE void transpose_eight(__m256 (&v)[8]) {
  __m256 t[8];
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    const __m256 low01 = _mm256_unpacklo_ps(v[i], v[i + 1]), high01 = _mm256_unpackhi_ps(v[i], v[i + 1]);
    const __m256 low23 = _mm256_unpacklo_ps(v[i + 2], v[i + 3]), high23 = _mm256_unpackhi_ps(v[i + 2], v[i + 3]);
    t[i] = _mm256_shuffle_ps(low01, low23, 0x44);
    t[i + 1] = _mm256_shuffle_ps(low01, low23, 0xEE);
    t[i + 2] = _mm256_shuffle_ps(high01, high23, 0x44);
    t[i + 3] = _mm256_shuffle_ps(high01, high23, 0xEE);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    v[j] = _mm256_permute2f128_ps(t[j], t[j + 4], 0x20);
    v[j + 4] = _mm256_permute2f128_ps(t[j], t[j + 4], 0x31);
  }
}

TRILITHON_INLINE void transpose(F (&v)[16]) {
  __m256 top_left[8], top_right[8], bottom_left[8], bottom_right[8];
  for (int i = 0; i < 8; ++i) {
    top_left[i] = v[i].a;
    top_right[i] = v[i].b;
    bottom_left[i] = v[i + 8].a;
    bottom_right[i] = v[i + 8].b;
  }
  transpose_eight(top_left);
  transpose_eight(top_right);
  transpose_eight(bottom_left);
  transpose_eight(bottom_right);
  for (int i = 0; i < 8; ++i) {
    v[i] = {top_left[i], bottom_left[i]};
    v[i + 8] = {top_right[i], bottom_right[i]};
  }
}

#else

TRILITHON_INLINE void transpose(F (&v)[16]) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < i; ++j) {
      const float above = v[j].v[i];
      v[j].v[i] = v[i].v[j];
      v[i].v[j] = above;
    }
  }
}

#endif

KERNELS_END
