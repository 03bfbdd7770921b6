// Arena: the memory of tensors. Reserved once, cut into blocks, blocks reused; nothing is given back to the system.
//
// Best fit with coalescing. The books are kept outside the memory they describe, so a kernel that writes past its output
// cannot damage them.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "pool/pages.h"

namespace trilithon {

class Arena {
 public:
  static constexpr size_t alignment = 64;

  explicit Arena(size_t capacity_bytes) : pages_(capacity_bytes) {
    if (pages_.data() != nullptr) add_free(0, pages_.bytes());
  }

  // Null when no free block is large enough.
  void* allocate(size_t bytes);
  void release(void* block);

  size_t capacity_bytes() const { return pages_.bytes(); }
  size_t used_bytes() const { return used_; }
  size_t peak_bytes() const { return peak_; }
  size_t largest_free_bytes() const { return free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first; }

 private:
  void add_free(size_t offset, size_t bytes);
  void remove_free(size_t offset, size_t bytes);

  Pages pages_;
  std::map<size_t, size_t> free_by_offset_;
  std::set<std::pair<size_t, size_t>> free_by_size_;  // bytes, offset: the lowest address among equals
  std::map<size_t, size_t> used_blocks_;
  size_t used_ = 0;
  size_t peak_ = 0;
};

}  // namespace trilithon
