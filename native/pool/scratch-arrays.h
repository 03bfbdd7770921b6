// Arrays cut from scratch memory of the runtime: first name them and their sizes, then reserve the region.
//
//   ScratchArrays arrays;
//   arrays.add(chunks, chunk_count);
//   arrays.add(delta, queries * heads);
//   if (Status status = arrays.reserve(op, runtime); !status.ok()) return status;
#pragma once

#include "pool/runtime.h"

namespace trilithon {

class ScratchArrays {
 public:
  // `array` points to `count` elements, at a multiple of 64 bytes, once `reserve` has returned without failure.
  template <typename T>
  void add(T*& array, int64_t count) {
    parts_[count_++] = {&array, bytes_, [](void* target, char* at) { *static_cast<T**>(target) = reinterpret_cast<T*>(at); }};
    bytes_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
  }

  // Takes the region that all threads share: what an earlier call of the same op has reserved there may be lost.
  Status reserve(const char* op, Runtime& runtime) {
    void* data = nullptr;
    if (Status status = runtime.scratch_for(op, -1, bytes_, data); !status.ok()) return status;
    for (int i = 0; i < count_; ++i) parts_[i].set(parts_[i].target, static_cast<char*>(data) + parts_[i].offset);
    return {};
  }

 private:
  struct Part {
    void* target;
    size_t offset;
    void (*set)(void* target, char* at);
  };

  Part parts_[12];
  int count_ = 0;
  size_t bytes_ = 0;
};

// Sees that every thread has so much scratch of its own, so that runtime.scratch(thread, bytes) inside `parallel` cannot fail.
inline Status reserve_thread_scratch(const char* op, Runtime& runtime, size_t bytes) {
  for (int thread = 0; thread < runtime.threads(); ++thread) {
    void* data = nullptr;
    if (Status status = runtime.scratch_for(op, thread, bytes, data); !status.ok()) return status;
  }
  return {};
}

}  // namespace trilithon
