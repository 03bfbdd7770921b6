#include "ops/casts/casts.h"

#include "isa/math.h"
#include "isa/row-reduce.h"

KERNELS_BEGIN

using namespace casts;

TRILITHON_INLINE I bf16_code(F x) {
  const I bits = as_int(x);
  const I rounded = ishr<16>(iadd(iadd(bits, iset(0x7FFF)), iand(ishr<16>(bits), iset(1))));
  return iselect(is_nan(x), ior(ishr<16>(bits), iset(0x40)), rounded);
}

// As float_to_8bit of include/float-formats.h, in lanes.
template <int mantissa_bits, int bias, int32_t largest, int32_t nan>
TRILITHON_INLINE I code_of_8_bits(F x) {
  constexpr int dropped = 23 - mantissa_bits;
  constexpr int32_t smallest_normal = (128 - bias) << 23;
  constexpr int32_t anchor = (127 + 23 + 1 - bias - mantissa_bits) << 23;
  const I bits = as_int(x);
  const I magnitude = iand(bits, iset(INT32_MAX));
  const I sign = iand(ishr<24>(bits), iset(0x80));
  const I rounded = iadd(iadd(magnitude, iset((1 << (dropped - 1)) - 1)), iand(ishr<dropped>(magnitude), iset(1)));
  const I normal = ishr<dropped>(isub(rounded, iset((127 - bias) << 23)));
  // The addition puts the format's smallest step at the last bit of the sum and rounds to even.
  const I subnormal = isub(as_int(add(as_float(magnitude), as_float(iset(anchor)))), iset(anchor));
  const I code = imin(iselect(igt(magnitude, iset(smallest_normal - 1)), normal, subnormal), iset(largest));
  return ior(sign, iselect(igt(magnitude, iset(0x7F800000)), iset(nan), code));
}

TRILITHON_INLINE I e4m3_code(F x) { return code_of_8_bits<3, 7, 0x7E, 0x7F>(x); }
TRILITHON_INLINE I e5m2_code(F x) { return code_of_8_bits<2, 15, 0x7B, 0x7F>(x); }

template <int mantissa_bits, int bias>
TRILITHON_INLINE F value_of_8_bits(I code) {
  constexpr int dropped = 23 - mantissa_bits;
  constexpr float step = 1.0f / static_cast<float>(1u << (bias - 1 + mantissa_bits));
  const I magnitude = iand(code, iset(0x7F));
  const I sign = ishl<24>(iand(code, iset(0x80)));
  const I normal = iadd(ishl<dropped>(magnitude), iset((127 - bias) << 23));
  const I subnormal = as_int(mul(to_float(magnitude), set(step)));
  return as_float(ior(sign, iselect(igt(magnitude, iset((1 << mantissa_bits) - 1)), normal, subnormal)));
}

TRILITHON_INLINE F e4m3_value(I code) {
  const I magnitude = iand(code, iset(0x7F));
  return select(ieq(magnitude, iset(0x7F)), set(__builtin_nanf("")), value_of_8_bits<3, 7>(code));
}

TRILITHON_INLINE F e5m2_value(I code) {
  const I magnitude = iand(code, iset(0x7F));
  // Exponent 31: infinity and NaN, whose mantissa goes along.
  const I special = ior(ishl<24>(iand(code, iset(0x80))), ior(iset(0x7F800000), ishl<21>(iand(code, iset(3)))));
  return select(igt(magnitude, iset(0x7B)), as_float(special), value_of_8_bits<2, 15>(code));
}

template <typename Code, typename Store>
TRILITHON_INLINE void narrow_with(const float* x, int64_t begin, int64_t end, Code code, Store store_code) {
  for_lanes(end - begin, [&](int64_t i, int64_t n) { store_code(begin + i, n, code(load_n(x + begin + i, n))); });
}

void narrow(DType format, const float* x, void* y, int64_t begin, int64_t end) {
  uint16_t* words = static_cast<uint16_t*>(y);
  uint8_t* bytes = static_cast<uint8_t*>(y);
  const auto store_byte = [bytes](int64_t i, int64_t n, I code) { store_u8(bytes + i, n, code); };
  if (format == DType::bf16)
    return narrow_with(
        x, begin, end, [](F v) { return bf16_code(v); }, [words](int64_t i, int64_t n, I code) { store_u16(words + i, n, code); });
  if (format == DType::f16)
    return narrow_with(
        x, begin, end, [](F v) { return v; }, [words](int64_t i, int64_t n, F v) { store_f16(words + i, n, v); });
  if (format == DType::e4m3)
    return narrow_with(
        x, begin, end, [](F v) { return e4m3_code(v); }, store_byte);
  return narrow_with(
      x, begin, end, [](F v) { return e5m2_code(v); }, store_byte);
}

void widen(DType format, const void* x, float* y, int64_t begin, int64_t end) {
  const uint16_t* words = static_cast<const uint16_t*>(x) + begin;
  const uint8_t* bytes = static_cast<const uint8_t*>(x) + begin;
  y += begin;
  const int64_t count = end - begin;
  if (format == DType::bf16)
    return for_lanes(count, [&](int64_t i, int64_t n) { store_n(y + i, n, as_float(ishl<16>(load_u16(words + i, n)))); });
  if (format == DType::f16) return for_lanes(count, [&](int64_t i, int64_t n) { store_n(y + i, n, load_f16(words + i, n)); });
  if (format == DType::e4m3) return for_lanes(count, [&](int64_t i, int64_t n) { store_n(y + i, n, e4m3_value(load_u8(bytes + i, n))); });
  return for_lanes(count, [&](int64_t i, int64_t n) { store_n(y + i, n, e5m2_value(load_u8(bytes + i, n))); });
}

// Rows and columns of a block that exist.
struct Block {
  int64_t row_begin, row_end, column, width;
};

TRILITHON_INLINE Block block_of(const BlockParams& p, int64_t index) {
  Block block;
  block.row_begin = index / p.blocks_across * p.block_rows;
  block.row_end = block.row_begin + p.block_rows < p.rows ? block.row_begin + p.block_rows : p.rows;
  block.column = index % p.blocks_across * block_columns;
  block.width = p.columns - block.column < block_columns ? p.columns - block.column : block_columns;
  return block;
}

// The smallest power of two that is not below a positive finite value; infinity stays.
TRILITHON_INLINE float power_of_two_above(float value) {
  int32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  const int32_t exponent = (bits >> 23) + ((bits & 0x007FFFFF) != 0 ? 1 : 0);
  bits = exponent << 23;
  __builtin_memcpy(&value, &bits, sizeof bits);
  return value;
}

void quantize(const BlockParams& p, int64_t block_begin, int64_t block_end) {
  for (int64_t index = block_begin; index < block_end; ++index) {
    const Block block = block_of(p, index);
    F largest = set(p.amax_floor);
    for (int64_t row = block.row_begin; row < block.row_end; ++row) {
      const float* x = p.x + row * p.x_stride + block.column;
      // The order of the operands drops a NaN.
      for_lanes(block.width, [&](int64_t i, int64_t n) { largest = max(abs(load_n(x + i, n)), largest); });
    }
    float scale = top(largest) / 448.0f;
    if (p.power_of_two) scale = power_of_two_above(scale);
    p.scales[index] = scale;
    const F inverse = set(1.0f / scale);
    for (int64_t row = block.row_begin; row < block.row_end; ++row) {
      const float* x = p.x + row * p.x_stride + block.column;
      uint8_t* codes = p.codes + row * p.codes_stride + block.column;
      for_lanes(block.width, [&](int64_t i, int64_t n) { store_u8(codes + i, n, e4m3_code(mul(load_n(x + i, n), inverse))); });
    }
  }
}

void dequantize(const BlockParams& p, int64_t block_begin, int64_t block_end) {
  for (int64_t index = block_begin; index < block_end; ++index) {
    const Block block = block_of(p, index);
    const F scale = set(p.scales[index]);
    for (int64_t row = block.row_begin; row < block.row_end; ++row) {
      const uint8_t* codes = p.codes + row * p.codes_stride + block.column;
      float* y = p.y + row * p.y_stride + block.column;
      for_lanes(block.width, [&](int64_t i, int64_t n) { store_n(y + i, n, mul(e4m3_value(load_u8(codes + i, n)), scale)); });
    }
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(casts, (narrow, widen, quantize, dequantize))
