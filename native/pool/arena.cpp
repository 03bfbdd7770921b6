#include "pool/arena.h"

#include <algorithm>
#include <iterator>

namespace trilithon {

void Arena::add_free(size_t offset, size_t bytes) {
  free_by_offset_.emplace(offset, bytes);
  free_by_size_.emplace(bytes, offset);
}

void Arena::remove_free(size_t offset, size_t bytes) {
  free_by_offset_.erase(offset);
  free_by_size_.erase({bytes, offset});
}

void* Arena::allocate(size_t bytes) {
  const size_t rounded = std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
  const auto fit = free_by_size_.lower_bound({rounded, 0});
  if (fit == free_by_size_.end()) return nullptr;
  const auto [free_bytes, offset] = *fit;
  remove_free(offset, free_bytes);
  if (free_bytes > rounded) add_free(offset + rounded, free_bytes - rounded);
  used_blocks_.emplace(offset, rounded);
  used_ += rounded;
  peak_ = std::max(peak_, used_);
  return pages_.data() + offset;
}

void Arena::release(void* block) {
  const auto used = used_blocks_.find(static_cast<size_t>(static_cast<char*>(block) - pages_.data()));
  size_t offset = used->first;
  size_t bytes = used->second;
  used_ -= bytes;
  used_blocks_.erase(used);
  const auto after = free_by_offset_.lower_bound(offset);
  if (after != free_by_offset_.end() && after->first == offset + bytes) {
    const auto [next_offset, next_bytes] = *after;
    remove_free(next_offset, next_bytes);
    bytes += next_bytes;
  }
  const auto next = free_by_offset_.lower_bound(offset);
  if (next != free_by_offset_.begin()) {
    const auto [previous_offset, previous_bytes] = *std::prev(next);
    if (previous_offset + previous_bytes == offset) {
      remove_free(previous_offset, previous_bytes);
      offset = previous_offset;
      bytes += previous_bytes;
    }
  }
  add_free(offset, bytes);
}

}  // namespace trilithon
