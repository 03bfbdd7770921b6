// Pages from the operating system: reserved once, backed by huge pages where it can, never returned before the end.
//
// Touching fresh memory costs a page fault each 4 KiB, up to 13 microseconds on virtual machines with shadowed page tables.
// So large regions are reserved up front and reused.
#pragma once

#include <cstddef>

namespace trilithon {

class Pages {
 public:
  Pages() = default;
  // Reserves address space; pages get memory when first touched. `data()` is null when the system refuses.
  explicit Pages(size_t bytes);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  size_t bytes_ = 0;
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
};

}  // namespace trilithon
