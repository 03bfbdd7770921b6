// Numerics profiles: the reduction order of every op, chosen once per run.
//
// A profile is a parameter of the runtime. Tables for another profile are added beside those of `fp32`; a profile without
// tables is refused with a sentence when the runtime is made.
#pragma once

#include <cstdint>

namespace trilithon {

enum class Profile : uint8_t { fp32, bf16 };

inline constexpr int profile_count = 2;

constexpr const char* profile_name(Profile profile) { return profile == Profile::fp32 ? "fp32" : "bf16"; }

// Null when this build computes the profile.
constexpr const char* profile_unsupported_reason(Profile profile) {
  return profile == Profile::fp32 ? nullptr : "this build has no kernel tables for numerics profile bf16";
}

}  // namespace trilithon
