#include "pool/runtime.h"

#include <string>

namespace trilithon {

void* Runtime::scratch(int thread, size_t bytes) {
  Pages& region = scratch_[static_cast<size_t>(thread + 1)];
  if (region.bytes() < bytes || region.data() == nullptr) {
    // Grows by half at least, so that slowly rising sizes do not map again and again. The old region goes first: its
    // contents are of no use any more.
    const size_t wanted = std::max({bytes, size_t{64}, region.bytes() + region.bytes() / 2});
    region = Pages();
    region = Pages(wanted);
  }
  return region.data();
}

Status Runtime::scratch_for(const char* op, int thread, size_t bytes, void*& data) {
  data = scratch(thread, bytes);
  if (data != nullptr) return {};
  return Status({ErrorCode::memory_exhausted, op, "", std::to_string(bytes) + " bytes of scratch memory", "none left"});
}

}  // namespace trilithon
