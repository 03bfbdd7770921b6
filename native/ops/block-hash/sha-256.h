// SHA-256 (FIPS 180-4), byte order and padding included.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trilithon::block_hash {

class Sha256 {
 public:
  static constexpr size_t digest_bytes = 32;

  void add(const void* data, size_t bytes);
  // A 32-bit number as four bytes, lowest first.
  void add_u32(uint32_t value);
  void finish(uint8_t* digest);

 private:
  void compress(const uint8_t* block);

  uint32_t state_[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  uint8_t buffer_[64];
  size_t buffered_ = 0;
  uint64_t total_bytes_ = 0;
};

}  // namespace trilithon::block_hash
