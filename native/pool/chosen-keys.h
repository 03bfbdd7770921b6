// Checks lists of chosen keys against the queries that they belong to.
#pragma once

#include <atomic>
#include <string>

#include "include/check.h"
#include "include/sequences.h"
#include "pool/runtime.h"

namespace trilithon {

// Each query's keys must ascend and lie at positions that it sees, at least one of them. `queries` rows, `top_k` columns.
inline Status check_chosen(const char* op, const ChosenKeys& chosen, const Chunk* chunks, int64_t chunk_count, int64_t queries,
                           Runtime& runtime) {
  if (chosen.indices.present() != chosen.counts.present()) {
    return invalid_argument(op, "counts", "indices and counts together or none of them", "one of them");
  }
  if (!chosen.present()) return {};
  Check check(op);
  Dim rows("queries", queries), top_k("top_k");
  check.shape("indices", chosen.indices, {&rows, &top_k});
  check.shape("counts", chosen.counts, {&rows});
  if (!check.ok()) return check.status();

  // Slot of the first bad entry of a row; -1 when the row is good, top_k when its count is bad.
  const auto bad_slot = [&](int64_t query, int64_t position) -> int64_t {
    const int32_t* list = chosen.indices.row<int32_t>(query);
    const int64_t count = chosen.counts.as<int32_t>()[query];
    if (count < 1 || count > top_k || count > position + 1) return top_k;
    int64_t before = -1;
    for (int64_t i = 0; i < count; ++i) {
      if (list[i] <= before || list[i] > position) return i;
      before = list[i];
    }
    return -1;
  };
  std::atomic<int64_t> first_bad{queries};
  for (int64_t c = 0; c < chunk_count; ++c) {
    const Chunk& chunk = chunks[c];
    Status status = runtime.parallel(op, chunk.query_count, Runtime::grain(4 * top_k), [&](int64_t begin, int64_t end, int) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t query = chunk.query_begin + t;
        if (bad_slot(query, chunk.position + t) < 0) continue;
        int64_t known = first_bad.load();
        while (query < known && !first_bad.compare_exchange_weak(known, query)) {
        }
        return;
      }
    });
    if (!status.ok()) return status;
    if (first_bad.load() == queries) continue;
    const int64_t query = first_bad.load(), position = chunk.position + query - chunk.query_begin, slot = bad_slot(query, position);
    const std::string where = " for query " + std::to_string(query) + " at position " + std::to_string(position);
    if (slot == top_k) {
      return invalid_argument(op, "counts", "from 1 to " + std::to_string(std::min<int64_t>(top_k, position + 1)) + " keys",
                              std::to_string(chosen.counts.as<int32_t>()[query]) + where);
    }
    return invalid_argument(op, "indices", "ascending positions that the query sees",
                            std::to_string(chosen.indices.row<int32_t>(query)[slot]) + where + ", entry " + std::to_string(slot));
  }
  return {};
}

}  // namespace trilithon
