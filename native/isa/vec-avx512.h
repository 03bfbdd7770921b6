// AVX-512 (F, BW, VL, DQ): sixteen lanes are one register. Included by vec.h only.
#pragma once

KERNELS_BEGIN

constexpr int lanes = 16;
using F = __m512;
using I = __m512i;
using M = __mmask16;

TRILITHON_INLINE M first(int64_t n) { return n >= 16 ? M(0xFFFF) : n <= 0 ? M(0) : M((1u << n) - 1u); }

// A count that the compiler knows to be sixteen takes the unmasked path.
TRILITHON_INLINE bool whole(int64_t n) { return __builtin_constant_p(n) && n >= 16; }

TRILITHON_INLINE F zero() { return _mm512_setzero_ps(); }
TRILITHON_INLINE F set(float x) { return _mm512_set1_ps(x); }
TRILITHON_INLINE F load(const float* p) { return _mm512_loadu_ps(p); }
TRILITHON_INLINE F load_n(const float* p, int64_t n) { return whole(n) ? load(p) : _mm512_maskz_loadu_ps(first(n), p); }
TRILITHON_INLINE void store(float* p, F v) { _mm512_storeu_ps(p, v); }
TRILITHON_INLINE void store_n(float* p, int64_t n, F v) {
  if (whole(n)) return store(p, v);
  _mm512_mask_storeu_ps(p, first(n), v);
}

TRILITHON_INLINE F add(F a, F b) { return _mm512_add_ps(a, b); }
TRILITHON_INLINE F sub(F a, F b) { return _mm512_sub_ps(a, b); }
TRILITHON_INLINE F mul(F a, F b) { return _mm512_mul_ps(a, b); }
TRILITHON_INLINE F div(F a, F b) { return _mm512_div_ps(a, b); }
TRILITHON_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
TRILITHON_INLINE F fnma(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
TRILITHON_INLINE F sqrt(F a) { return _mm512_sqrt_ps(a); }
TRILITHON_INLINE F min(F a, F b) { return _mm512_min_ps(a, b); }
TRILITHON_INLINE F max(F a, F b) { return _mm512_max_ps(a, b); }

TRILITHON_INLINE I as_int(F v) { return _mm512_castps_si512(v); }
TRILITHON_INLINE F as_float(I v) { return _mm512_castsi512_ps(v); }
TRILITHON_INLINE I iset(int32_t x) { return _mm512_set1_epi32(x); }
TRILITHON_INLINE I iota() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
TRILITHON_INLINE I iload(const int32_t* p) { return _mm512_loadu_si512(p); }
TRILITHON_INLINE I iload_n(const int32_t* p, int64_t n) { return _mm512_maskz_loadu_epi32(first(n), p); }
TRILITHON_INLINE void istore(int32_t* p, I v) { _mm512_storeu_si512(p, v); }
TRILITHON_INLINE void istore_n(int32_t* p, int64_t n, I v) { _mm512_mask_storeu_epi32(p, first(n), v); }
TRILITHON_INLINE I iadd(I a, I b) { return _mm512_add_epi32(a, b); }
TRILITHON_INLINE I isub(I a, I b) { return _mm512_sub_epi32(a, b); }
TRILITHON_INLINE I imul(I a, I b) { return _mm512_mullo_epi32(a, b); }
TRILITHON_INLINE I iand(I a, I b) { return _mm512_and_si512(a, b); }
TRILITHON_INLINE I ior(I a, I b) { return _mm512_or_si512(a, b); }
TRILITHON_INLINE I ixor(I a, I b) { return _mm512_xor_si512(a, b); }
TRILITHON_INLINE I imin(I a, I b) { return _mm512_min_epi32(a, b); }
TRILITHON_INLINE I imax(I a, I b) { return _mm512_max_epi32(a, b); }
template <int n>
TRILITHON_INLINE I ishl(I a) {
  return _mm512_slli_epi32(a, n);
}
template <int n>
TRILITHON_INLINE I ishr(I a) {
  return _mm512_srli_epi32(a, n);
}
template <int n>
TRILITHON_INLINE I isar(I a) {
  return _mm512_srai_epi32(a, n);
}
TRILITHON_INLINE F to_float(I v) { return _mm512_cvtepi32_ps(v); }
TRILITHON_INLINE I to_int(F v) { return _mm512_cvtps_epi32(v); }

TRILITHON_INLINE F neg(F a) { return as_float(ixor(as_int(a), iset(INT32_MIN))); }
TRILITHON_INLINE F abs(F a) { return as_float(iand(as_int(a), iset(INT32_MAX))); }

TRILITHON_INLINE M lt(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
TRILITHON_INLINE M le(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
TRILITHON_INLINE M gt(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
TRILITHON_INLINE M ge(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
TRILITHON_INLINE M eq(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
TRILITHON_INLINE M is_nan(F a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
TRILITHON_INLINE M ieq(I a, I b) { return _mm512_cmpeq_epi32_mask(a, b); }
TRILITHON_INLINE M igt(I a, I b) { return _mm512_cmpgt_epi32_mask(a, b); }
TRILITHON_INLINE M and_(M a, M b) { return M(a & b); }
TRILITHON_INLINE M or_(M a, M b) { return M(a | b); }
TRILITHON_INLINE M not_(M a) { return M(~a); }
TRILITHON_INLINE unsigned bits(M m) { return m; }
TRILITHON_INLINE F select(M m, F a, F b) { return _mm512_mask_blend_ps(m, b, a); }
TRILITHON_INLINE I iselect(M m, I a, I b) { return _mm512_mask_blend_epi32(m, b, a); }

TRILITHON_INLINE float sum(F v) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
TRILITHON_INLINE float top(F v) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

TRILITHON_INLINE void unzip(F x, F y, F& even, F& odd) {
  const I places = ishl<1>(iota());
  even = _mm512_permutex2var_ps(x, places, y);
  odd = _mm512_permutex2var_ps(x, iadd(places, iset(1)), y);
}
TRILITHON_INLINE void zip(F even, F odd, F& x, F& y) {
  const I places = iadd(ishr<1>(iota()), ishl<4>(iand(iota(), iset(1))));
  x = _mm512_permutex2var_ps(even, places, odd);
  y = _mm512_permutex2var_ps(even, iadd(places, iset(8)), odd);
}

TRILITHON_INLINE I load_u8(const uint8_t* p, int64_t n) { return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first(n), p)); }
TRILITHON_INLINE I load_u16(const uint16_t* p, int64_t n) { return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first(n), p)); }
TRILITHON_INLINE void store_u8(uint8_t* p, int64_t n, I v) { _mm_mask_storeu_epi8(p, first(n), _mm512_cvtepi32_epi8(v)); }
TRILITHON_INLINE void store_u16(uint16_t* p, int64_t n, I v) { _mm256_mask_storeu_epi16(p, first(n), _mm512_cvtepi32_epi16(v)); }
TRILITHON_INLINE F load_f16(const uint16_t* p, int64_t n) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), p)); }
TRILITHON_INLINE void store_f16(uint16_t* p, int64_t n, F v) {
  _mm256_mask_storeu_epi16(p, first(n), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

KERNELS_END
