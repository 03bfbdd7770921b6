// Checks of `slot_row`, the place of each (token, slot) among the rows sorted by expert. Shared by moe-permute and moe-combine.
#pragma once

#include <cstring>

#include "include/check.h"
#include "pool/runtime.h"

namespace trilithon::moe_permute {

// Every entry is a row. With `each_once`, each row also has exactly one entry: what is written by slot then writes all.
inline Status check_slot_rows(const char* name, const TensorView& slot_row, int64_t rows, bool each_once, Runtime& runtime) {
  const int32_t* entries = slot_row.as<int32_t>();
  const int64_t count = slot_row.elements(), top_k = slot_row.shape[1];
  const auto refuse = [&](int64_t i, const std::string& expected) {
    return invalid_argument(
        name, "slot_row", expected,
        std::to_string(entries[i]) + " in slot " + std::to_string(i % top_k) + " of token " + std::to_string(i / top_k));
  };
  void* data = nullptr;
  if (each_once && count > 0) {
    if (Status status = runtime.scratch_for(name, -1, static_cast<size_t>(rows), data); !status.ok()) return status;
    std::memset(data, 0, static_cast<size_t>(rows));
  }
  uint8_t* seen = static_cast<uint8_t*>(data);
  for (int64_t i = 0; i < count; ++i) {
    if (entries[i] < 0 || entries[i] >= rows) return refuse(i, "rows from 0 to " + std::to_string(rows - 1));
    if (seen != nullptr && seen[entries[i]]++ != 0) return refuse(i, "each row once");
  }
  return {};
}

}  // namespace trilithon::moe_permute
