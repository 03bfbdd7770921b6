// Random numbers for cases: the same seed gives the same numbers on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace trilithon {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // A stream of its own for each name.
  Random(uint64_t seed, const std::string& name) : state_(seed) {
    for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
    next();
  }

  // splitmix64 (S. Vigna, public domain).
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  int64_t below(int64_t limit) { return static_cast<int64_t>(next() % static_cast<uint64_t>(limit)); }

  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  uint64_t state_;
};

}  // namespace trilithon
