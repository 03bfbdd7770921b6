// TensorTable: handles to tensors of one JavaScript environment.
//
// A handle is a number that a double holds exactly: slot (22 bits), generation (25 bits), environment (6 bits). Disposing
// raises the slot's generation, so an old handle is recognised for ever; a slot whose generations are used up is retired.
// Views share the storage of the tensor they were made from; the memory is free when the last of them is disposed.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "include/status.h"
#include "include/tensor-view.h"
#include "pool/arena.h"

namespace trilithon {

using TensorHandle = uint64_t;

class TensorTable {
 public:
  // `environment` tells handles of different workers apart.
  TensorTable(size_t capacity_bytes, unsigned environment);
  ~TensorTable();
  TensorTable(const TensorTable&) = delete;
  TensorTable& operator=(const TensorTable&) = delete;

  // A new tensor whose elements are not initialised.
  Status create(const char* op, DType dtype, int rank, const int64_t* shape, TensorHandle& handle);

  // Memory of someone else; `release` is called when the last view of it is disposed.
  Status wrap(const char* op, const TensorView& view, std::function<void()> release, TensorHandle& handle);

  // Another shape and other strides over the same storage, from `offset` elements after the first of `source`.
  Status view(const char* op, TensorHandle source, int rank, const int64_t* shape, const int64_t* strides, int64_t offset,
              TensorHandle& handle);

  Status dispose(const char* op, TensorHandle handle);

  // The view behind a handle, or the failure that says what is wrong with it.
  Status find(const char* op, const char* argument, TensorHandle handle, TensorView& view) const;

  size_t live_tensors() const { return live_; }
  const Arena& arena() const { return arena_; }

 private:
  struct Storage {
    void* data = nullptr;
    int64_t bytes = 0;
    int users = 0;
    std::function<void()> release;  // empty for arena memory
  };
  struct Slot {
    TensorView view;
    uint32_t generation = 1;
    bool live = false;
    uint32_t storage = 0;
  };

  Status open_slot(const char* op, const TensorView& view, uint32_t storage, TensorHandle& handle);
  Status find_slot(const char* op, const char* argument, TensorHandle handle, uint32_t& slot) const;
  uint32_t new_storage(Storage storage);
  void leave_storage(uint32_t storage);

  Arena arena_;
  unsigned environment_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
  std::vector<Storage> storages_;
  std::vector<uint32_t> free_storages_;
  size_t live_ = 0;
};

}  // namespace trilithon
