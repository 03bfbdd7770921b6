// The instruction sets that kernels are compiled for, lowest first.
#pragma once

namespace trilithon {

enum class Isa : unsigned char { scalar, avx2, avx512 };

inline constexpr int isa_count = 3;

}  // namespace trilithon
