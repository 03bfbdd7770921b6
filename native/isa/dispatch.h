// Chooses the kernel table: the best instruction set that this processor runs, or a lower one forced by TRILITHON_ISA.
//
// All tables of one numerics profile give the same bits, so the choice changes speed and nothing else.
#pragma once

#include <string>

#include "isa/cpu-features.h"
#include "isa/isa.h"

namespace trilithon {

const char* isa_name(Isa isa);

// Empty when `isa` runs here; else one sentence, for example "needs avx512bw, which this processor does not have".
std::string isa_unsupported_reason(Isa isa, const CpuFeatures& features);

struct IsaChoice {
  Isa isa = Isa::scalar;
  // One sentence: why this table.
  std::string reason;
  // Set when TRILITHON_ISA asks for something that cannot be had; every computation is refused with this sentence.
  std::string problem;
};

// `forced` is the value of TRILITHON_ISA, or null when it is not set.
IsaChoice choose_isa(const CpuFeatures& features, const char* forced);

}  // namespace trilithon
