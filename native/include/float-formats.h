// Storage formats to and from float, one value at a time, in integer arithmetic.
//
//   bf16   the upper half of a float; NaN stays NaN (quiet)
//   f16    IEEE half, with the bits of the F16C instructions, NaN payloads included
//   e4m3   8 bits, exponent bias 7, largest 448, NaN 0x7F and 0xFF, no infinity
//   e5m2   8 bits, exponent bias 15, largest finite 57344, infinity 0x7C, NaN above it
//
// To narrow: round to nearest even. The 8-bit formats saturate: everything beyond the largest finite value, infinity
// included, becomes that value (as the satfinite conversions of GPUs do).
#pragma once

#include <stdint.h>

namespace trilithon {
namespace {

inline float bits_to_float(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

inline uint32_t float_to_bits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float f16_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t mantissa = half & 0x3FFu;
  if (exponent == 0x1F) return bits_to_float(sign | 0x7F800000u | (mantissa << 13) | (mantissa != 0 ? 0x400000u : 0u));
  if (exponent != 0) return bits_to_float(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Subnormal: mantissa steps of 2^-24, exact in float.
  return bits_to_float(sign | float_to_bits(static_cast<float>(mantissa) * 0x1p-24f));
}

// Round to nearest even; too large becomes infinity.
inline uint16_t float_to_f16(float value) {
  const uint32_t bits = float_to_bits(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);
  if (magnitude >= 0x38800000u) {
    const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
  }
  // Subnormal result: adding 0.5 puts the step of 2^-24 at the last bit of the sum, and the addition rounds to even.
  const float shifted = bits_to_float(magnitude) + 0.5f;
  return static_cast<uint16_t>(sign | (float_to_bits(shifted) - 0x3F000000u));
}

inline float bf16_to_float(uint16_t half) { return bits_to_float(static_cast<uint32_t>(half) << 16); }

inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = float_to_bits(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// Eight bits with `mantissa_bits` of mantissa and a bias of 2^(exponent_bits - 1) - 1; `largest` is the code of the largest
// finite value and `nan` the one that NaN becomes.
template <int mantissa_bits, int bias, uint32_t largest, uint32_t nan>
inline uint8_t float_to_8bit(float value) {
  const uint32_t bits = float_to_bits(value);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint8_t>(sign | nan);
  constexpr int dropped = 23 - mantissa_bits;
  constexpr uint32_t smallest_normal = static_cast<uint32_t>(128 - bias) << 23;
  uint32_t code;
  if (magnitude >= smallest_normal) {
    const uint32_t rounded = magnitude + ((1u << (dropped - 1)) - 1u) + ((magnitude >> dropped) & 1u);
    code = (rounded - (static_cast<uint32_t>(127 - bias) << 23)) >> dropped;
  } else {
    // Subnormal result: the addition puts the format's smallest step at the last bit of the sum and rounds to even.
    constexpr uint32_t anchor = static_cast<uint32_t>(127 + 23 + 1 - bias - mantissa_bits) << 23;
    code = float_to_bits(bits_to_float(magnitude) + bits_to_float(anchor)) - anchor;
  }
  return static_cast<uint8_t>(sign | (code > largest ? largest : code));
}

template <int mantissa_bits, int bias>
inline float small_to_float(uint32_t code) {
  const uint32_t magnitude = code & 0x7Fu;
  const uint32_t sign = (code & 0x80u) << 24;
  constexpr int dropped = 23 - mantissa_bits;
  if ((magnitude >> mantissa_bits) != 0) return bits_to_float(sign | ((magnitude << dropped) + (static_cast<uint32_t>(127 - bias) << 23)));
  constexpr float step = 1.0f / static_cast<float>(1u << (bias - 1 + mantissa_bits));
  return bits_to_float(sign | float_to_bits(static_cast<float>(magnitude) * step));
}

inline uint8_t float_to_e4m3(float value) { return float_to_8bit<3, 7, 0x7E, 0x7F>(value); }
inline uint8_t float_to_e5m2(float value) { return float_to_8bit<2, 15, 0x7B, 0x7F>(value); }

inline float e4m3_to_float(uint8_t code) {
  if ((code & 0x7F) == 0x7F) return bits_to_float((static_cast<uint32_t>(code & 0x80) << 24) | 0x7FC00000u);
  return small_to_float<3, 7>(code);
}

inline float e5m2_to_float(uint8_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24;
  if ((code & 0x7F) == 0x7C) return bits_to_float(sign | 0x7F800000u);
  if ((code & 0x7F) > 0x7C) return bits_to_float(sign | 0x7FC00000u);
  return small_to_float<2, 15>(code);
}

}  // namespace
}  // namespace trilithon
