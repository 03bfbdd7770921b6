#include "isa/dispatch.h"

#include <cstring>

namespace trilithon {
namespace {

constexpr Isa all_isas[isa_count] = {Isa::scalar, Isa::avx2, Isa::avx512};

struct Need {
  const char* name;
  bool present;
};

std::string first_missing(const Need* needs, int count) {
  for (int i = 0; i < count; ++i) {
    if (!needs[i].present) return std::string("needs ") + needs[i].name + ", which this processor does not have";
  }
  return {};
}

}  // namespace

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return "scalar";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "scalar";
}

std::string isa_unsupported_reason(Isa isa, const CpuFeatures& f) {
  switch (isa) {
    case Isa::scalar:
      return {};
    case Isa::avx2: {
      const Need needs[] = {{"avx2", f.avx2}, {"fma", f.fma}, {"f16c", f.f16c}};
      return first_missing(needs, 3);
    }
    case Isa::avx512: {
      const Need needs[] = {{"avx2", f.avx2},         {"fma", f.fma},           {"f16c", f.f16c},        {"avx512f", f.avx512f},
                            {"avx512bw", f.avx512bw}, {"avx512vl", f.avx512vl}, {"avx512dq", f.avx512dq}};
      return first_missing(needs, 7);
    }
  }
  return {};
}

IsaChoice choose_isa(const CpuFeatures& features, const char* forced) {
  IsaChoice choice;
  if (forced != nullptr && *forced != '\0') {
    for (Isa isa : all_isas) {
      if (std::strcmp(forced, isa_name(isa)) != 0) continue;
      const std::string missing = isa_unsupported_reason(isa, features);
      if (!missing.empty()) {
        choice.problem = std::string("TRILITHON_ISA=") + forced + " " + missing;
        return choice;
      }
      choice.isa = isa;
      choice.reason = std::string("forced by TRILITHON_ISA=") + forced;
      return choice;
    }
    choice.problem = std::string("TRILITHON_ISA=") + forced + " is none of scalar, avx2, avx512";
    return choice;
  }
  for (int i = isa_count - 1; i >= 0; --i) {
    const Isa isa = all_isas[i];
    const std::string missing = isa_unsupported_reason(isa, features);
    if (!missing.empty()) {
      if (choice.reason.empty()) choice.reason = std::string(isa_name(isa)) + " " + missing;
      continue;
    }
    choice.isa = isa;
    choice.reason = std::string("best instruction set found") + (choice.reason.empty() ? "" : " (" + choice.reason + ")");
    break;
  }
  return choice;
}

}  // namespace trilithon
