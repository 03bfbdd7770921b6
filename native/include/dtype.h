// Element types of tensors, their sizes and their names.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trilithon {

enum class DType : uint8_t { f32, f64, bf16, f16, e4m3, e5m2, i32, i64, u32, u16, u8 };

inline constexpr int dtype_count = 11;

constexpr size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::u16:
      return 2;
    case DType::e4m3:
    case DType::e5m2:
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::e4m3:
      return "e4m3";
    case DType::e5m2:
      return "e5m2";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u32:
      return "u32";
    case DType::u16:
      return "u16";
    case DType::u8:
      return "u8";
  }
  return "?";
}

// Which element types an argument accepts.
struct DTypeSet {
  uint32_t bits = 0;
  constexpr bool has(DType dtype) const { return (bits >> static_cast<int>(dtype)) & 1u; }
  constexpr bool operator==(const DTypeSet&) const = default;
  constexpr DTypeSet operator|(DTypeSet other) const { return {bits | other.bits}; }
};

constexpr DTypeSet only(DType dtype) { return {1u << static_cast<int>(dtype)}; }

// The working precision of a call: f32, or f64 on the reference backend. All arguments of this kind in one call have the
// same type.
inline constexpr DTypeSet floats{only(DType::f32).bits | only(DType::f64).bits};

}  // namespace trilithon
