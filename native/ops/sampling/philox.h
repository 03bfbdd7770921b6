// Philox4x32-10, a counter-based random number generator (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// 2011): the numbers of a place are computed from the place, so nothing has to be kept or stepped.
#pragma once

#include <cstdint>

namespace trilithon::sampling {

struct PhiloxBlock {
  uint32_t words[4];
};

inline PhiloxBlock philox(PhiloxBlock counter, uint32_t key_low, uint32_t key_high) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter.words[0], second = uint64_t{0xCD9E8D57} * counter.words[2];
    counter = {{static_cast<uint32_t>(second >> 32) ^ counter.words[1] ^ key_low, static_cast<uint32_t>(second),
                static_cast<uint32_t>(first >> 32) ^ counter.words[3] ^ key_high, static_cast<uint32_t>(first)}};
    key_low += 0x9E3779B9;
    key_high += 0xBB67AE85;
  }
  return counter;
}

// The number in [0, 1) that belongs to a request's seed and a position, with 53 bits.
inline double uniform_of(int64_t seed, int64_t position) {
  const uint64_t key = static_cast<uint64_t>(seed), place = static_cast<uint64_t>(position);
  const PhiloxBlock block = philox({{static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32), 0, 0}}, static_cast<uint32_t>(key),
                                   static_cast<uint32_t>(key >> 32));
  return static_cast<double>((uint64_t{block.words[0]} << 32 | block.words[1]) >> 11) * 0x1p-53;
}

}  // namespace trilithon::sampling
