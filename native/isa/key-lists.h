// Queries with the keys that they see, all or listed, as MLA attention, the indexer and its KL loss walk over them.
#pragma once

#include "isa/attend.h"

KERNELS_BEGIN

// Queries that are computed together: tokens that see all keys up to their own, or one token with its list.
struct Span {
  const Chunk* chunk;
  int64_t query, position, tokens;
  const int32_t* list;  // null: all keys
  int64_t count;        // of the list

  // Keys that its last token sees.
  TRILITHON_INLINE_MEMBER int64_t end() const { return list == nullptr ? position + tokens : count; }
  // Keys that its token `token` sees.
  TRILITHON_INLINE_MEMBER int64_t seen(int64_t token) const { return list == nullptr ? position + token + 1 : count; }
  // Position in the document of the key in slot `slot`.
  TRILITHON_INLINE_MEMBER int64_t key(int64_t slot) const { return list == nullptr ? slot : list[slot]; }

  // First slot whose key is not below a position.
  TRILITHON_INLINE_MEMBER int64_t first_slot(int64_t position_wanted) const {
    if (list == nullptr) return clamp(position_wanted, 0, end());
    int64_t low = 0, high = count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (list[middle] < position_wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

TRILITHON_INLINE bool sees_all(const ChosenRows& chosen, int64_t query, int64_t position) {
  return chosen.indices == nullptr || chosen.counts[query] == position + 1;
}

TRILITHON_INLINE Span span_of_one(const ChosenRows& chosen, const Chunk& chunk, int64_t query, int64_t position) {
  if (sees_all(chosen, query, position)) return {&chunk, query, position, 1, nullptr, 0};
  return {&chunk, query, position, 1, chosen.indices + query * chosen.stride, chosen.counts[query]};
}

// Calls body(span) for `tokens` queries, `most` of them together at most. A list of all keys is no list: both give the same bits.
template <typename Body>
TRILITHON_INLINE void for_spans(const ChosenRows& chosen, const Chunk& chunk, int64_t query, int64_t position, int64_t tokens, int64_t most,
                                Body body) {
  for (int64_t t = 0; t < tokens;) {
    Span span = span_of_one(chosen, chunk, query + t, position + t);
    if (span.list == nullptr) {
      while (span.tokens < at_most(tokens - t, most) && sees_all(chosen, query + t + span.tokens, position + t + span.tokens))
        ++span.tokens;
    }
    body(span);
    t += span.tokens;
  }
}

// The queries of a task.
struct Task {
  const Chunk* chunk;
  int64_t query, position, tokens;
};

// Later queries first: they see most keys, and the longest work should start first.
TRILITHON_INLINE Task find_task(int64_t tokens_per_task, const Chunk* chunks, const int64_t* first_task, int64_t chunk_count,
                                int64_t task) {
  const int64_t owner = owner_of(first_task, chunk_count, task);
  const Chunk& chunk = chunks[owner];
  const int64_t begin = (first_task[owner + 1] - 1 - task) * tokens_per_task;
  return {&chunk, chunk.query_begin + begin, chunk.position + begin, at_most(chunk.query_count - begin, tokens_per_task)};
}

KERNELS_END
