// Plain C++: sixteen lanes are an array. Runs on every processor, and is the proof that the other tables are right.
// Included by vec.h only.
#pragma once

#include "include/float-formats.h"

KERNELS_BEGIN

constexpr int lanes = 16;
struct F {
  float v[16];
};
struct I {
  int32_t v[16];
};
struct M {
  int32_t v[16];  // -1 or 0
};

// One expression per lane. `i` is the lane.
#define TRILITHON_LANES(Type, expression)             \
  Type r;                                             \
  for (int i = 0; i < 16; ++i) r.v[i] = (expression); \
  return r

TRILITHON_INLINE M first(int64_t n) { TRILITHON_LANES(M, i < n ? -1 : 0); }

TRILITHON_INLINE F zero() { TRILITHON_LANES(F, 0.0f); }
TRILITHON_INLINE F set(float x) { TRILITHON_LANES(F, x); }
TRILITHON_INLINE F load(const float* p) { TRILITHON_LANES(F, p[i]); }
TRILITHON_INLINE F load_n(const float* p, int64_t n) { TRILITHON_LANES(F, i < n ? p[i] : 0.0f); }
TRILITHON_INLINE void store(float* p, F x) {
  for (int i = 0; i < 16; ++i) p[i] = x.v[i];
}
TRILITHON_INLINE void store_n(float* p, int64_t n, F x) {
  for (int i = 0; i < 16 && i < n; ++i) p[i] = x.v[i];
}

TRILITHON_INLINE F add(F x, F y) { TRILITHON_LANES(F, x.v[i] + y.v[i]); }
TRILITHON_INLINE F sub(F x, F y) { TRILITHON_LANES(F, x.v[i] - y.v[i]); }
TRILITHON_INLINE F mul(F x, F y) { TRILITHON_LANES(F, x.v[i] * y.v[i]); }
TRILITHON_INLINE F div(F x, F y) { TRILITHON_LANES(F, x.v[i] / y.v[i]); }
TRILITHON_INLINE F fma(F x, F y, F z) { TRILITHON_LANES(F, __builtin_fmaf(x.v[i], y.v[i], z.v[i])); }
TRILITHON_INLINE F fnma(F x, F y, F z) { TRILITHON_LANES(F, __builtin_fmaf(-x.v[i], y.v[i], z.v[i])); }
TRILITHON_INLINE F sqrt(F x) { TRILITHON_LANES(F, __builtin_sqrtf(x.v[i])); }
TRILITHON_INLINE F min(F x, F y) { TRILITHON_LANES(F, x.v[i] < y.v[i] ? x.v[i] : y.v[i]); }
TRILITHON_INLINE F max(F x, F y) { TRILITHON_LANES(F, x.v[i] > y.v[i] ? x.v[i] : y.v[i]); }

TRILITHON_INLINE I as_int(F x) {
  I r;
  __builtin_memcpy(&r, &x, sizeof r);
  return r;
}
TRILITHON_INLINE F as_float(I x) {
  F r;
  __builtin_memcpy(&r, &x, sizeof r);
  return r;
}
TRILITHON_INLINE I iset(int32_t x) { TRILITHON_LANES(I, x); }
TRILITHON_INLINE I iota() { TRILITHON_LANES(I, i); }
TRILITHON_INLINE I iload(const int32_t* p) { TRILITHON_LANES(I, p[i]); }
TRILITHON_INLINE I iload_n(const int32_t* p, int64_t n) { TRILITHON_LANES(I, i < n ? p[i] : 0); }
TRILITHON_INLINE void istore(int32_t* p, I x) {
  for (int i = 0; i < 16; ++i) p[i] = x.v[i];
}
TRILITHON_INLINE void istore_n(int32_t* p, int64_t n, I x) {
  for (int i = 0; i < 16 && i < n; ++i) p[i] = x.v[i];
}
// Wrapping arithmetic, as the vector instructions have it.
TRILITHON_INLINE I iadd(I x, I y) { TRILITHON_LANES(I, int32_t(uint32_t(x.v[i]) + uint32_t(y.v[i]))); }
TRILITHON_INLINE I isub(I x, I y) { TRILITHON_LANES(I, int32_t(uint32_t(x.v[i]) - uint32_t(y.v[i]))); }
TRILITHON_INLINE I imul(I x, I y) { TRILITHON_LANES(I, int32_t(uint32_t(x.v[i]) * uint32_t(y.v[i]))); }
TRILITHON_INLINE I iand(I x, I y) { TRILITHON_LANES(I, x.v[i] & y.v[i]); }
TRILITHON_INLINE I ior(I x, I y) { TRILITHON_LANES(I, x.v[i] | y.v[i]); }
TRILITHON_INLINE I ixor(I x, I y) { TRILITHON_LANES(I, x.v[i] ^ y.v[i]); }
TRILITHON_INLINE I imin(I x, I y) { TRILITHON_LANES(I, x.v[i] < y.v[i] ? x.v[i] : y.v[i]); }
TRILITHON_INLINE I imax(I x, I y) { TRILITHON_LANES(I, x.v[i] > y.v[i] ? x.v[i] : y.v[i]); }
template <int n>
TRILITHON_INLINE I ishl(I x) {
  TRILITHON_LANES(I, int32_t(uint32_t(x.v[i]) << n));
}
template <int n>
TRILITHON_INLINE I ishr(I x) {
  TRILITHON_LANES(I, int32_t(uint32_t(x.v[i]) >> n));
}
template <int n>
TRILITHON_INLINE I isar(I x) {
  TRILITHON_LANES(I, x.v[i] >> n);
}
TRILITHON_INLINE F to_float(I x) { TRILITHON_LANES(F, float(x.v[i])); }
// The conversion instruction gives INT32_MIN for what does not fit; the C++ conversion would be undefined there.
TRILITHON_INLINE I to_int(F x) {
  TRILITHON_LANES(I, x.v[i] >= -0x1p31f && x.v[i] < 0x1p31f ? int32_t(__builtin_rintf(x.v[i])) : INT32_MIN);
}

TRILITHON_INLINE F neg(F x) { return as_float(ixor(as_int(x), iset(INT32_MIN))); }
TRILITHON_INLINE F abs(F x) { return as_float(iand(as_int(x), iset(INT32_MAX))); }

TRILITHON_INLINE M lt(F x, F y) { TRILITHON_LANES(M, -int32_t(x.v[i] < y.v[i])); }
TRILITHON_INLINE M le(F x, F y) { TRILITHON_LANES(M, -int32_t(x.v[i] <= y.v[i])); }
TRILITHON_INLINE M gt(F x, F y) { TRILITHON_LANES(M, -int32_t(x.v[i] > y.v[i])); }
TRILITHON_INLINE M ge(F x, F y) { TRILITHON_LANES(M, -int32_t(x.v[i] >= y.v[i])); }
TRILITHON_INLINE M eq(F x, F y) { TRILITHON_LANES(M, -int32_t(x.v[i] == y.v[i])); }
TRILITHON_INLINE M is_nan(F x) { TRILITHON_LANES(M, -int32_t(x.v[i] != x.v[i])); }
TRILITHON_INLINE M ieq(I x, I y) { TRILITHON_LANES(M, -int32_t(x.v[i] == y.v[i])); }
TRILITHON_INLINE M igt(I x, I y) { TRILITHON_LANES(M, -int32_t(x.v[i] > y.v[i])); }
TRILITHON_INLINE M and_(M x, M y) { TRILITHON_LANES(M, x.v[i] & y.v[i]); }
TRILITHON_INLINE M or_(M x, M y) { TRILITHON_LANES(M, x.v[i] | y.v[i]); }
TRILITHON_INLINE M not_(M x) { TRILITHON_LANES(M, ~x.v[i]); }
TRILITHON_INLINE unsigned bits(M m) {
  unsigned r = 0;
  for (int i = 0; i < 16; ++i) r |= (unsigned(m.v[i]) & 1u) << i;
  return r;
}
TRILITHON_INLINE I iselect(M m, I x, I y) { TRILITHON_LANES(I, (m.v[i] & x.v[i]) | (~m.v[i] & y.v[i])); }
TRILITHON_INLINE F select(M m, F x, F y) { return as_float(iselect(m, as_int(x), as_int(y))); }

TRILITHON_INLINE float sum(F x) {
  for (int half = 8; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) x.v[i] = x.v[i] + x.v[i + half];
  }
  return x.v[0];
}
TRILITHON_INLINE float top(F x) {
  for (int half = 8; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) x.v[i] = x.v[i] > x.v[i + half] ? x.v[i] : x.v[i + half];
  }
  return x.v[0];
}

TRILITHON_INLINE void unzip(F x, F y, F& even, F& odd) {
  for (int i = 0; i < 16; ++i) {
    even.v[i] = i < 8 ? x.v[2 * i] : y.v[2 * i - 16];
    odd.v[i] = i < 8 ? x.v[2 * i + 1] : y.v[2 * i - 15];
  }
}
TRILITHON_INLINE void zip(F even, F odd, F& x, F& y) {
  for (int i = 0; i < 8; ++i) {
    x.v[2 * i] = even.v[i];
    x.v[2 * i + 1] = odd.v[i];
    y.v[2 * i] = even.v[i + 8];
    y.v[2 * i + 1] = odd.v[i + 8];
  }
}

TRILITHON_INLINE I load_u8(const uint8_t* p, int64_t n) { TRILITHON_LANES(I, i < n ? p[i] : 0); }
TRILITHON_INLINE I load_u16(const uint16_t* p, int64_t n) { TRILITHON_LANES(I, i < n ? p[i] : 0); }
TRILITHON_INLINE void store_u8(uint8_t* p, int64_t n, I x) {
  for (int i = 0; i < 16 && i < n; ++i) p[i] = static_cast<uint8_t>(x.v[i]);
}
TRILITHON_INLINE void store_u16(uint16_t* p, int64_t n, I x) {
  for (int i = 0; i < 16 && i < n; ++i) p[i] = static_cast<uint16_t>(x.v[i]);
}
TRILITHON_INLINE F load_f16(const uint16_t* p, int64_t n) { TRILITHON_LANES(F, i < n ? f16_to_float(p[i]) : 0.0f); }
TRILITHON_INLINE void store_f16(uint16_t* p, int64_t n, F x) {
  for (int i = 0; i < 16 && i < n; ++i) p[i] = float_to_f16(x.v[i]);
}

#undef TRILITHON_LANES

KERNELS_END
