// AVX2 with FMA and F16C: sixteen lanes are two registers. Included by vec.h only.
#pragma once

KERNELS_BEGIN

constexpr int lanes = 16;
struct F {
  __m256 a, b;
};
struct I {
  __m256i a, b;
};
struct M {
  __m256 a, b;  // all bits of a lane set or none
};

TRILITHON_INLINE I as_int(F v) { return {_mm256_castps_si256(v.a), _mm256_castps_si256(v.b)}; }
TRILITHON_INLINE F as_float(I v) { return {_mm256_castsi256_ps(v.a), _mm256_castsi256_ps(v.b)}; }
TRILITHON_INLINE I iset(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
TRILITHON_INLINE I iota() { return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)}; }
TRILITHON_INLINE M igt(I x, I y) {
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(x.a, y.a)), _mm256_castsi256_ps(_mm256_cmpgt_epi32(x.b, y.b))};
}
TRILITHON_INLINE M ieq(I x, I y) {
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(x.a, y.a)), _mm256_castsi256_ps(_mm256_cmpeq_epi32(x.b, y.b))};
}
TRILITHON_INLINE M first(int64_t n) { return igt(iset(n >= 16 ? 16 : n < 0 ? 0 : static_cast<int32_t>(n)), iota()); }

// A count that the compiler knows to be sixteen takes the unmasked path.
TRILITHON_INLINE bool whole(int64_t n) { return __builtin_constant_p(n) && n >= 16; }

TRILITHON_INLINE F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
TRILITHON_INLINE F set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
TRILITHON_INLINE F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
TRILITHON_INLINE F load_n(const float* p, int64_t n) {
  if (whole(n)) return load(p);
  const M m = first(n);
  return {_mm256_maskload_ps(p, _mm256_castps_si256(m.a)), _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.b))};
}
TRILITHON_INLINE void store(float* p, F v) {
  _mm256_storeu_ps(p, v.a);
  _mm256_storeu_ps(p + 8, v.b);
}
TRILITHON_INLINE void store_n(float* p, int64_t n, F v) {
  if (whole(n)) return store(p, v);
  const M m = first(n);
  _mm256_maskstore_ps(p, _mm256_castps_si256(m.a), v.a);
  _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.b), v.b);
}

TRILITHON_INLINE F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
TRILITHON_INLINE F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
TRILITHON_INLINE F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
TRILITHON_INLINE F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
TRILITHON_INLINE F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
TRILITHON_INLINE F fnma(F x, F y, F z) { return {_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)}; }
TRILITHON_INLINE F sqrt(F x) { return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
TRILITHON_INLINE F min(F x, F y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
TRILITHON_INLINE F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }

TRILITHON_INLINE I iload(const int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
TRILITHON_INLINE I iload_n(const int32_t* p, int64_t n) {
  const M m = first(n);
  return {_mm256_maskload_epi32(p, _mm256_castps_si256(m.a)), _mm256_maskload_epi32(p + 8, _mm256_castps_si256(m.b))};
}
TRILITHON_INLINE void istore(int32_t* p, I v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v.a);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), v.b);
}
TRILITHON_INLINE void istore_n(int32_t* p, int64_t n, I v) {
  const M m = first(n);
  _mm256_maskstore_epi32(p, _mm256_castps_si256(m.a), v.a);
  _mm256_maskstore_epi32(p + 8, _mm256_castps_si256(m.b), v.b);
}
TRILITHON_INLINE I iadd(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
TRILITHON_INLINE I isub(I x, I y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
TRILITHON_INLINE I imul(I x, I y) { return {_mm256_mullo_epi32(x.a, y.a), _mm256_mullo_epi32(x.b, y.b)}; }
TRILITHON_INLINE I iand(I x, I y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
TRILITHON_INLINE I ior(I x, I y) { return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)}; }
TRILITHON_INLINE I ixor(I x, I y) { return {_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)}; }
TRILITHON_INLINE I imin(I x, I y) { return {_mm256_min_epi32(x.a, y.a), _mm256_min_epi32(x.b, y.b)}; }
TRILITHON_INLINE I imax(I x, I y) { return {_mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b)}; }
template <int n>
TRILITHON_INLINE I ishl(I x) {
  return {_mm256_slli_epi32(x.a, n), _mm256_slli_epi32(x.b, n)};
}
template <int n>
TRILITHON_INLINE I ishr(I x) {
  return {_mm256_srli_epi32(x.a, n), _mm256_srli_epi32(x.b, n)};
}
template <int n>
TRILITHON_INLINE I isar(I x) {
  return {_mm256_srai_epi32(x.a, n), _mm256_srai_epi32(x.b, n)};
}
TRILITHON_INLINE F to_float(I v) { return {_mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b)}; }
TRILITHON_INLINE I to_int(F v) { return {_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b)}; }

TRILITHON_INLINE F neg(F v) { return as_float(ixor(as_int(v), iset(INT32_MIN))); }
TRILITHON_INLINE F abs(F v) { return as_float(iand(as_int(v), iset(INT32_MAX))); }

TRILITHON_INLINE M lt(F x, F y) { return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)}; }
TRILITHON_INLINE M le(F x, F y) { return {_mm256_cmp_ps(x.a, y.a, _CMP_LE_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LE_OQ)}; }
TRILITHON_INLINE M gt(F x, F y) { return {_mm256_cmp_ps(x.a, y.a, _CMP_GT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_GT_OQ)}; }
TRILITHON_INLINE M ge(F x, F y) { return {_mm256_cmp_ps(x.a, y.a, _CMP_GE_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_GE_OQ)}; }
TRILITHON_INLINE M eq(F x, F y) { return {_mm256_cmp_ps(x.a, y.a, _CMP_EQ_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_EQ_OQ)}; }
TRILITHON_INLINE M is_nan(F x) { return {_mm256_cmp_ps(x.a, x.a, _CMP_UNORD_Q), _mm256_cmp_ps(x.b, x.b, _CMP_UNORD_Q)}; }
TRILITHON_INLINE M and_(M x, M y) { return {_mm256_and_ps(x.a, y.a), _mm256_and_ps(x.b, y.b)}; }
TRILITHON_INLINE M or_(M x, M y) { return {_mm256_or_ps(x.a, y.a), _mm256_or_ps(x.b, y.b)}; }
TRILITHON_INLINE M not_(M x) {
  const __m256 ones = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
  return {_mm256_xor_ps(x.a, ones), _mm256_xor_ps(x.b, ones)};
}
TRILITHON_INLINE unsigned bits(M m) {
  return static_cast<unsigned>(_mm256_movemask_ps(m.a)) | static_cast<unsigned>(_mm256_movemask_ps(m.b)) << 8;
}
TRILITHON_INLINE F select(M m, F x, F y) { return {_mm256_blendv_ps(y.a, x.a, m.a), _mm256_blendv_ps(y.b, x.b, m.b)}; }
TRILITHON_INLINE I iselect(M m, I x, I y) { return as_int(select(m, as_float(x), as_float(y))); }

TRILITHON_INLINE float sum(F v) {
  const __m256 eight = _mm256_add_ps(v.a, v.b);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
TRILITHON_INLINE float top(F v) {
  const __m256 eight = _mm256_max_ps(v.a, v.b);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

TRILITHON_INLINE __m256 quarters_in_order(__m256 v) { return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xD8)); }
TRILITHON_INLINE void unzip(F x, F y, F& even, F& odd) {
  even = {quarters_in_order(_mm256_shuffle_ps(x.a, x.b, 0x88)), quarters_in_order(_mm256_shuffle_ps(y.a, y.b, 0x88))};
  odd = {quarters_in_order(_mm256_shuffle_ps(x.a, x.b, 0xDD)), quarters_in_order(_mm256_shuffle_ps(y.a, y.b, 0xDD))};
}
TRILITHON_INLINE void zip(F even, F odd, F& x, F& y) {
  const auto pair = [](__m256 e, __m256 o) {
    const __m256 low = _mm256_unpacklo_ps(e, o), high = _mm256_unpackhi_ps(e, o);
    return F{_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
  };
  x = pair(even.a, odd.a);
  y = pair(even.b, odd.b);
}

// AVX2 has no masked access below 32 bits: a partial vector goes through a buffer.
template <typename T>
TRILITHON_INLINE void copy_n(T* to, const T* from, int64_t n) {
  for (int64_t i = 0; i < n && i < 16; ++i) to[i] = from[i];
}
TRILITHON_INLINE I load_u8(const uint8_t* p, int64_t n) {
  alignas(16) uint8_t buffer[16] = {};
  if (n < 16) copy_n(buffer, p, n);
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(n < 16 ? buffer : p));
  return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
}
TRILITHON_INLINE __m256i load_16bit(const uint16_t* p, int64_t n) {
  alignas(32) uint16_t buffer[16] = {};
  if (n < 16) copy_n(buffer, p, n);
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(n < 16 ? buffer : p));
}
TRILITHON_INLINE void store_16bit(uint16_t* p, int64_t n, __m256i v) {
  if (n >= 16) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
  } else {
    alignas(32) uint16_t buffer[16];
    _mm256_store_si256(reinterpret_cast<__m256i*>(buffer), v);
    copy_n(p, buffer, n);
  }
}
TRILITHON_INLINE I load_u16(const uint16_t* p, int64_t n) {
  const __m256i words = load_16bit(p, n);
  return {_mm256_cvtepu16_epi32(_mm256_castsi256_si128(words)), _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1))};
}
// The low 16 bits of each lane, in order.
TRILITHON_INLINE __m256i low_halves(I v) {
  const __m256i mask = _mm256_set1_epi32(0xFFFF);
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(_mm256_and_si256(v.a, mask), _mm256_and_si256(v.b, mask)), 0xD8);
}
TRILITHON_INLINE void store_u16(uint16_t* p, int64_t n, I v) { store_16bit(p, n, low_halves(v)); }
TRILITHON_INLINE void store_u8(uint8_t* p, int64_t n, I v) {
  const __m256i words = _mm256_and_si256(low_halves(v), _mm256_set1_epi16(0xFF));
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  if (n >= 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  } else {
    alignas(16) uint8_t buffer[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(buffer), bytes);
    copy_n(p, buffer, n);
  }
}
TRILITHON_INLINE F load_f16(const uint16_t* p, int64_t n) {
  const __m256i words = load_16bit(p, n);
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(words)), _mm256_cvtph_ps(_mm256_extracti128_si256(words, 1))};
}
TRILITHON_INLINE void store_f16(uint16_t* p, int64_t n, F v) {
  const __m128i low = _mm256_cvtps_ph(v.a, _MM_FROUND_TO_NEAREST_INT);
  const __m128i high = _mm256_cvtps_ph(v.b, _MM_FROUND_TO_NEAREST_INT);
  store_16bit(p, n, _mm256_set_m128i(high, low));
}

KERNELS_END
