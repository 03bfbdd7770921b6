// Elementary functions in sixteen lanes: our own polynomials, so that every table gives the same bits.
//
// Their errors and borders are in ops/elementary/README.md, which tests each by itself. Polynomials of exp, log, sin and cos
// are those of the Cephes library (S. Moshier), evaluated with fma.
#pragma once

#include "isa/vec.h"

KERNELS_BEGIN

// 1 / sqrt(x): both operations are correctly rounded by IEEE 754, so no polynomial is needed. 2 roundings.
TRILITHON_INLINE F rsqrt(F x) { return div(set(1.0f), sqrt(x)); }

// Nearest whole number, ties to even, for |x| < 2^22: the addition pushes the fraction out of the mantissa.
TRILITHON_INLINE F round_small(F x) {
  const F magic = set(0x1.8p23f);
  return sub(add(x, magic), magic);
}

// 2^n for whole n in [-126, 127].
TRILITHON_INLINE F power_of_two(I n) { return as_float(ishl<23>(iadd(n, iset(127)))); }

// e^x. Overflow gives infinity, underflow goes through subnormals to 0, NaN stays NaN.
TRILITHON_INLINE F exp(F x) {
  // The order of the operands lets a NaN through.
  x = max(set(-104.0f), min(set(89.0f), x));
  const F n = round_small(mul(x, set(0x1.715476p0f)));
  F r = fnma(n, set(0x1.62e430p-1f), x);
  r = fnma(n, set(-0x1.05c610p-29f), r);
  F p = set(1.9875691500e-4f);
  p = fma(p, r, set(1.3981999507e-3f));
  p = fma(p, r, set(8.3334519073e-3f));
  p = fma(p, r, set(4.1665795894e-2f));
  p = fma(p, r, set(1.6666665459e-1f));
  p = fma(p, r, set(5.0000001201e-1f));
  p = fma(mul(r, r), p, r);
  p = add(p, set(1.0f));
  // Two factors, because 2^n itself may be out of range where the result is not.
  const I whole = to_int(n);
  const I half = isar<1>(whole);
  return mul(mul(p, power_of_two(half)), power_of_two(isub(whole, half)));
}

// Natural logarithm. log(0) = -infinity, log(x < 0) = NaN, log(infinity) = infinity.
TRILITHON_INLINE F log(F x) {
  const M subnormal = lt(x, set(0x1p-126f));
  const F scaled = select(subnormal, mul(x, set(0x1p23f)), x);
  const I raw = as_int(scaled);
  // Mantissa in [sqrt(1/2), sqrt(2)): subtracting the bits of sqrt(1/2) moves the border of the exponent there.
  const I offset = isub(raw, iset(0x3F3504F3));
  I exponent = isar<23>(offset);
  const F m = as_float(iadd(iand(offset, iset(0x007FFFFF)), iset(0x3F3504F3)));
  exponent = isub(exponent, iselect(subnormal, iset(23), iset(0)));
  const F e = to_float(exponent);
  const F r = sub(m, set(1.0f));
  const F z = mul(r, r);
  F p = set(7.0376836292e-2f);
  p = fma(p, r, set(-1.1514610310e-1f));
  p = fma(p, r, set(1.1676998740e-1f));
  p = fma(p, r, set(-1.2420140846e-1f));
  p = fma(p, r, set(1.4249322787e-1f));
  p = fma(p, r, set(-1.6668057665e-1f));
  p = fma(p, r, set(2.0000714765e-1f));
  p = fma(p, r, set(-2.4999993993e-1f));
  p = fma(p, r, set(3.3333331174e-1f));
  F y = mul(mul(r, z), p);
  y = fma(e, set(-2.12194440e-4f), y);
  y = fnma(set(0.5f), z, y);
  F result = fma(e, set(0.693359375f), add(r, y));
  result = select(eq(x, set(__builtin_inff())), x, result);
  result = select(eq(x, zero()), set(-__builtin_inff()), result);
  const M invalid = or_(lt(x, zero()), is_nan(x));
  return select(invalid, set(__builtin_nanf("")), result);
}

// sin and cos together. Full accuracy for |x| <= 2^20; the error grows beyond, and infinity gives NaN.
TRILITHON_INLINE void sin_cos(F x, F& sine, F& cosine) {
  const F q = round_small(mul(x, set(0x1.45f306p-1f)));
  // pi/2 in three parts. The first difference is exact: q is whole and the part has 24 bits.
  F r = fnma(q, set(0x1.921fb6p0f), x);
  r = fnma(q, set(-0x1.777a5cp-25f), r);
  r = fnma(q, set(-0x1.ee59dap-50f), r);
  const F z = mul(r, r);
  F s = set(-1.9515295891e-4f);
  s = fma(s, z, set(8.3321608736e-3f));
  s = fma(s, z, set(-1.6666654611e-1f));
  s = fma(mul(s, z), r, r);
  F c = set(2.443315711809948e-5f);
  c = fma(c, z, set(-1.388731625493765e-3f));
  c = fma(c, z, set(4.166664568298827e-2f));
  c = fma(mul(c, z), z, fnma(set(0.5f), z, set(1.0f)));
  const I quadrant = to_int(q);
  const M swapped = ieq(iand(quadrant, iset(1)), iset(1));
  const I sine_sign = ishl<30>(iand(quadrant, iset(2)));
  const I cosine_sign = ishl<30>(iand(iadd(quadrant, iset(1)), iset(2)));
  sine = as_float(ixor(as_int(select(swapped, c, s)), sine_sign));
  cosine = as_float(ixor(as_int(select(swapped, s, c)), cosine_sign));
}

// 1 / (1 + e^-x).
TRILITHON_INLINE F sigmoid(F x) { return div(set(1.0f), add(set(1.0f), exp(neg(x)))); }

// x * sigmoid(x).
TRILITHON_INLINE F silu(F x) { return div(x, add(set(1.0f), exp(neg(x)))); }

KERNELS_END
