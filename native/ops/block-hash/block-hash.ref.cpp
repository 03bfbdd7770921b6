#include <algorithm>
#include <cstring>

#include "ops/block-hash/block-hash.h"
#include "ops/block-hash/sha-256.h"

namespace trilithon::block_hash {
namespace {

constexpr uint32_t round_constants[64] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u, 0xd807aa98u, 0x12835b01u,
    0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu,
    0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u,
    0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u, 0x1e376c08u,
    0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u, 0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u,
    0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u};

uint32_t rotate_right(uint32_t value, int by) { return value >> by | value << (32 - by); }

}  // namespace

void Sha256::compress(const uint8_t* block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) {
    w[i] = static_cast<uint32_t>(block[4 * i]) << 24 | static_cast<uint32_t>(block[4 * i + 1]) << 16 |
           static_cast<uint32_t>(block[4 * i + 2]) << 8 | block[4 * i + 3];
  }
  for (int i = 16; i < 64; ++i) {
    const uint32_t low = rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t high = rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + low + w[i - 7] + high;
  }
  uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3], e = state_[4], f = state_[5], g = state_[6], h = state_[7];
  for (int i = 0; i < 64; ++i) {
    const uint32_t choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
    const uint32_t first = h + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) + choice + round_constants[i] + w[i];
    const uint32_t second = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) + majority;
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const uint32_t words[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[i] += words[i];
}

void Sha256::add(const void* data, size_t bytes) {
  const uint8_t* next = static_cast<const uint8_t*>(data);
  total_bytes_ += bytes;
  while (bytes > 0) {
    const size_t taken = std::min(bytes, sizeof buffer_ - buffered_);
    std::memcpy(buffer_ + buffered_, next, taken);
    buffered_ += taken;
    next += taken;
    bytes -= taken;
    if (buffered_ == sizeof buffer_) {
      compress(buffer_);
      buffered_ = 0;
    }
  }
}

void Sha256::add_u32(uint32_t value) {
  const uint8_t bytes[4] = {static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8), static_cast<uint8_t>(value >> 16),
                            static_cast<uint8_t>(value >> 24)};
  add(bytes, sizeof bytes);
}

void Sha256::finish(uint8_t* digest) {
  const uint64_t bits = total_bytes_ * 8;
  const uint8_t end = 0x80, zero = 0;
  add(&end, 1);
  while (buffered_ != 56) add(&zero, 1);
  uint8_t length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<uint8_t>(bits >> (56 - 8 * i));
  add(length, sizeof length);
  for (int i = 0; i < 32; ++i) digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
}

void digest_reference(const Digest& a) {
  Sha256 hash;
  if (a.bytes.elements() > 0) hash.add(a.bytes.as<uint8_t>(), static_cast<size_t>(a.bytes.elements()));
  hash.finish(a.hash.as<uint8_t>());
}

void root_reference(const Root& a) {
  Sha256 hash;
  for (const TensorView* field : {&a.salt, &a.profile, &a.format, &a.tenant}) {
    hash.add_u32(static_cast<uint32_t>(field->elements()));
    if (field->elements() > 0) hash.add(field->as<uint8_t>(), static_cast<size_t>(field->elements()));
  }
  hash.finish(a.hash.as<uint8_t>());
}

void chain_reference(const Chain& a) {
  const uint8_t* parent = a.parent.as<uint8_t>();
  for (int64_t block = 0; block < a.hashes.shape[0]; ++block) {
    Sha256 hash;
    hash.add(parent, Sha256::digest_bytes);
    for (int64_t i = 0; i < a.block_size; ++i) hash.add_u32(static_cast<uint32_t>(a.tokens.as<int32_t>()[block * a.block_size + i]));
    uint8_t* own = a.hashes.as<uint8_t>() + block * static_cast<int64_t>(Sha256::digest_bytes);
    hash.finish(own);
    parent = own;
  }
}

}  // namespace trilithon::block_hash
