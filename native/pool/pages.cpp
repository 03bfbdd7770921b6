#include "pool/pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <utility>

namespace trilithon {
namespace {

constexpr size_t huge_page = size_t{2} << 20;

}  // namespace

Pages::Pages(size_t bytes) {
  if (bytes == 0) return;
  // One huge page more than asked for, so that the start can be moved up to a boundary.
  const size_t rounded = (bytes + huge_page - 1) / huge_page * huge_page;
  const size_t mapping_bytes = rounded + huge_page;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
  flags |= MAP_NORESERVE;
#endif
  void* mapping = mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapping == MAP_FAILED) return;
  mapping_ = mapping;
  mapping_bytes_ = mapping_bytes;
  const uintptr_t start = (reinterpret_cast<uintptr_t>(mapping) + huge_page - 1) / huge_page * huge_page;
  data_ = reinterpret_cast<char*>(start);
  bytes_ = rounded;
#if defined(MADV_HUGEPAGE)
  // A hint: without huge pages the memory is slower and still right.
  (void)madvise(data_, bytes_, MADV_HUGEPAGE);
#endif
}

Pages::~Pages() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

Pages::Pages(Pages&& other) noexcept { *this = std::move(other); }

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  return *this;
}

}  // namespace trilithon
