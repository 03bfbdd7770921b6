#include "pool/tensor-table.h"

#include <algorithm>

#include "include/check.h"

namespace trilithon {
namespace {

constexpr int slot_bits = 22;
constexpr int generation_bits = 25;
constexpr int environment_bits = 6;
constexpr uint64_t slot_limit = uint64_t{1} << slot_bits;
constexpr uint32_t generation_limit = (uint32_t{1} << generation_bits) - 1;

uint64_t pack(uint64_t slot, uint64_t generation, uint64_t environment) {
  return (((environment << generation_bits) | generation) << slot_bits) | slot;
}

}  // namespace

TensorTable::TensorTable(size_t capacity_bytes, unsigned environment)
    : arena_(capacity_bytes), environment_(environment & ((1u << environment_bits) - 1)) {}

TensorTable::~TensorTable() {
  for (Storage& storage : storages_) {
    if (storage.users > 0 && storage.release) storage.release();
  }
}

uint32_t TensorTable::new_storage(Storage storage) {
  if (free_storages_.empty()) {
    storages_.push_back(std::move(storage));
    return static_cast<uint32_t>(storages_.size() - 1);
  }
  const uint32_t index = free_storages_.back();
  free_storages_.pop_back();
  storages_[index] = std::move(storage);
  return index;
}

void TensorTable::leave_storage(uint32_t index) {
  Storage& storage = storages_[index];
  if (--storage.users > 0) return;
  if (storage.release) {
    storage.release();
  } else {
    arena_.release(storage.data);
  }
  storage = Storage{};
  free_storages_.push_back(index);
}

Status TensorTable::open_slot(const char* op, const TensorView& view, uint32_t storage, TensorHandle& handle) {
  uint32_t index = 0;
  if (!free_slots_.empty()) {
    index = free_slots_.back();
    free_slots_.pop_back();
  } else if (slots_.size() < slot_limit) {
    index = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    return Status({ErrorCode::memory_exhausted, op, "", "at most " + std::to_string(slot_limit) + " live tensors", "one more"});
  }
  Slot& slot = slots_[index];
  slot.view = view;
  slot.live = true;
  slot.storage = storage;
  ++storages_[storage].users;
  ++live_;
  handle = pack(index, slot.generation, environment_);
  return {};
}

Status TensorTable::create(const char* op, DType dtype, int rank, const int64_t* shape, TensorHandle& handle) {
  // Each factor is below 2^53; the product is checked in floating point before it is taken in integers.
  double bytes = static_cast<double>(dtype_size(dtype));
  for (int i = 0; i < rank; ++i) bytes *= static_cast<double>(shape[i]);
  const TensorView sized = contiguous_view(nullptr, dtype, rank, shape);
  void* data = bytes <= static_cast<double>(arena_.capacity_bytes()) ? arena_.allocate(static_cast<size_t>(bytes)) : nullptr;
  if (data == nullptr) {
    return Status({ErrorCode::memory_exhausted, op, "",
                   "a free block of " + number_text(bytes) + " bytes for " + dtype_name(dtype) + " " + shape_text(sized),
                   "an arena of " + std::to_string(arena_.capacity_bytes()) + " bytes with " + std::to_string(arena_.used_bytes()) +
                       " in use and a largest free block of " + std::to_string(arena_.largest_free_bytes())});
  }
  const uint32_t storage = new_storage({data, static_cast<int64_t>(bytes), 0, nullptr});
  Status status = open_slot(op, contiguous_view(data, dtype, rank, shape), storage, handle);
  if (!status.ok()) {
    arena_.release(data);
    storages_[storage] = Storage{};
    free_storages_.push_back(storage);
  }
  return status;
}

Status TensorTable::wrap(const char* op, const TensorView& view, std::function<void()> release, TensorHandle& handle) {
  const uint32_t storage = new_storage({view.data, span_bytes(view), 0, std::move(release)});
  Status status = open_slot(op, view, storage, handle);
  if (!status.ok()) {
    storages_[storage].release();
    storages_[storage] = Storage{};
    free_storages_.push_back(storage);
  }
  return status;
}

Status TensorTable::view(const char* op, TensorHandle source, int rank, const int64_t* shape, const int64_t* strides, int64_t offset,
                         TensorHandle& handle) {
  uint32_t slot = 0;
  if (Status status = find_slot(op, "source", source, slot); !status.ok()) return status;
  const TensorView& base = slots_[slot].view;
  const uint32_t storage = slots_[slot].storage;
  TensorView view = contiguous_view(nullptr, base.dtype, rank, shape);
  if (strides != nullptr) std::copy(strides, strides + rank, view.stride);

  // In floating point, because a stride times a shape may leave 64 bits; the storage itself is far below 2^53 elements.
  const double size = static_cast<double>(dtype_size(base.dtype));
  double lowest = (static_cast<char*>(base.data) - static_cast<char*>(storages_[storage].data)) / size + static_cast<double>(offset);
  const double first = lowest;
  double highest = lowest;
  bool empty = false;
  for (int i = 0; i < rank; ++i) {
    if (shape[i] == 0) empty = true;
    const double reach = static_cast<double>(shape[i] - 1) * static_cast<double>(view.stride[i]);
    (reach < 0 ? lowest : highest) += reach;
  }
  const double available = static_cast<double>(storages_[storage].bytes) / size;
  if (empty ? (first < 0 || first > available) : (lowest < 0 || highest >= available)) {
    return invalid_argument(op, "shape", "a view inside the " + number_text(available) + " elements of the storage",
                            "shape " + shape_text(view) + " with strides " + strides_text(view) + " at element " + number_text(first));
  }
  view.data = static_cast<char*>(base.data) + offset * static_cast<int64_t>(dtype_size(base.dtype));
  return open_slot(op, view, storage, handle);
}

Status TensorTable::find_slot(const char* op, const char* argument, TensorHandle handle, uint32_t& index) const {
  const uint64_t slot = handle & (slot_limit - 1);
  const uint64_t generation = (handle >> slot_bits) & generation_limit;
  const uint64_t environment = handle >> (slot_bits + generation_bits);
  if (environment != environment_) return invalid_argument(op, argument, "a tensor of this thread", "a tensor handle of another thread");
  if (slot >= slots_.size() || generation == 0 || generation > slots_[slot].generation) {
    return invalid_argument(op, argument, "a tensor handle", std::to_string(handle));
  }
  if (!slots_[slot].live || generation != slots_[slot].generation) {
    return Status({ErrorCode::handle_disposed, op, argument, "a live tensor", "a tensor that has been disposed"});
  }
  index = static_cast<uint32_t>(slot);
  return {};
}

Status TensorTable::dispose(const char* op, TensorHandle handle) {
  uint32_t index = 0;
  if (Status status = find_slot(op, "tensor", handle, index); !status.ok()) return status;
  Slot& slot = slots_[index];
  slot.live = false;
  --live_;
  leave_storage(slot.storage);
  // A handle whose generation could come round again might be taken for a new tensor: such a slot is not used any more.
  if (slot.generation < generation_limit) {
    ++slot.generation;
    free_slots_.push_back(index);
  }
  return {};
}

Status TensorTable::find(const char* op, const char* argument, TensorHandle handle, TensorView& view) const {
  uint32_t slot = 0;
  Status status = find_slot(op, argument, handle, slot);
  if (status.ok()) view = slots_[slot].view;
  return status;
}

}  // namespace trilithon
