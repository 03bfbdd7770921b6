// Expert ids in memory, of any type of the routed layout. Shared by the router and by what moves tokens to experts.
#pragma once

#include "include/tensor-view.h"

namespace trilithon::moe_router {

// Expert ids as the routed layout has them; a missing row has all bits set.
inline constexpr DTypeSet id_types = only(DType::u8) | only(DType::u16) | only(DType::i32);

// Ids in memory, of any of their types.
struct Ids {
  void* data;
  DType type;
  int64_t top_k;
};

// In an unnamed namespace because the kernels of every instruction set include them.
namespace {

inline int64_t get_id(const Ids& ids, int64_t token, int64_t slot) {
  const int64_t i = token * ids.top_k + slot;
  if (ids.type == DType::u8) return static_cast<const uint8_t*>(ids.data)[i];
  if (ids.type == DType::u16) return static_cast<const uint16_t*>(ids.data)[i];
  return static_cast<const int32_t*>(ids.data)[i];
}

inline void set_id(const Ids& ids, int64_t token, int64_t slot, int64_t id) {
  const int64_t i = token * ids.top_k + slot;
  if (ids.type == DType::u8) {
    static_cast<uint8_t*>(ids.data)[i] = static_cast<uint8_t>(id);
  } else if (ids.type == DType::u16) {
    static_cast<uint16_t*>(ids.data)[i] = static_cast<uint16_t>(id);
  } else {
    static_cast<int32_t*>(ids.data)[i] = static_cast<int32_t>(id);
  }
}

inline bool is_missing(const Ids& ids, int64_t token) {
  const int64_t all_bits = ids.type == DType::u8 ? 0xFF : ids.type == DType::u16 ? 0xFFFF : -1;
  for (int64_t slot = 0; slot < ids.top_k; ++slot) {
    if (get_id(ids, token, slot) != all_bits) return false;
  }
  return true;
}

inline Ids ids_of(const TensorView& view) { return {view.data, view.dtype, view.data != nullptr ? view.shape[1] : 0}; }

}  // namespace

}  // namespace trilithon::moe_router
