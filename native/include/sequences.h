// Sequences: which rows of a call's queries and keys belong together, and at which positions they stand. Shared by attention,
// MLA attention and the indexer, so that all read the same description.
//
// Packed (training): keys of documents lie one after another, document d in rows [document_starts[d], document_starts[d + 1]).
// Queries are the same rows; or, for context parallelism, any chunks of them: chunk c has rows [chunk_starts[c],
// chunk_starts[c + 1]) of the queries, belongs to document chunk_documents[c] and begins at position chunk_positions[c] in it.
//
// Paged (engine): the key at position p of sequence s lies in page block_table[s, p / block_size] at offset p mod block_size.
// The queries of sequence s are rows [query_starts[s], query_starts[s + 1]) and stand at its last positions:
// context_lengths[s] counts all its keys, those of the queries included.
//
// A query at position p sees the keys 0 to p of its document.
#pragma once

#include "include/op.h"

namespace trilithon {

struct PackedSequences {
  TensorView document_starts, chunk_starts, chunk_documents, chunk_positions;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("document_starts", document_starts, only(DType::i32), "[documents + 1]");
    v.input("chunk_starts", chunk_starts, only(DType::i32), "[chunks + 1]", optional);
    v.input("chunk_documents", chunk_documents, only(DType::i32), "[chunks]", optional);
    v.input("chunk_positions", chunk_positions, only(DType::i32), "[chunks]", optional);
  }
};

struct PagedSequences {
  TensorView query_starts, context_lengths, block_table;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("query_starts", query_starts, only(DType::i32), "[sequences + 1]");
    v.input("context_lengths", context_lengths, only(DType::i32), "[sequences]");
    v.input("block_table", block_table, only(DType::i32), "[sequences, pages]");
  }
};

// Queries in consecutive rows at consecutive positions of one document or sequence.
struct Chunk {
  int64_t query_begin, query_count;
  int64_t position;   // of the first query
  int64_t document;   // packed: of document_starts; paged: of block_table
  int64_t key_begin;  // packed: row of the document's first key
  int64_t key_count;  // keys that the document has
};

// Where rows of keys are, for kernels: row j of a chunk is at
//   packed (block_table null)   data + (key_begin + j) * row_stride
//   paged                       data + block_table[document * table_stride + j / block_size] * page_stride + j % block_size * row_stride
struct PageMap {
  const int32_t* block_table;
  int64_t table_stride, block_size;
};

struct KeyRows {
  const float* data;
  int64_t row_stride, page_stride;  // in elements
};

// Rows of [rows, heads, width], for kernels.
struct Heads {
  float* data;
  int64_t stride, head_stride;  // in elements
};
inline KeyRows packed_rows(const TensorView& view) { return {view.as<float>(), view.stride[0], 0}; }
inline KeyRows paged_rows(const TensorView& view) { return {view.as<float>(), view.stride[1], view.stride[0]}; }
inline Heads heads_of(const TensorView& view) { return {view.as<float>(), view.stride[0], view.stride[1]}; }

// Keys that each query attends to, by their positions in the document, ascending: the first counts[query] of indices[query].
// Both left out: all keys up to its own.
struct ChosenKeys {
  TensorView indices, counts;

  bool present() const { return indices.present(); }

  template <typename Visitor>
  void visit(Visitor& v, unsigned flags) {
    v.input("indices", indices, only(DType::i32), "[queries, top_k]", flags);
    v.input("counts", counts, only(DType::i32), "[queries]", flags);
  }
};

// The same for kernels; null: all keys.
struct ChosenRows {
  const int32_t* indices;
  const int32_t* counts;
  int64_t stride;
};
inline ChosenRows chosen_rows(const ChosenKeys& chosen) {
  if (!chosen.present()) return {nullptr, nullptr, 0};
  return {chosen.indices.as<int32_t>(), chosen.counts.as<int32_t>(), chosen.indices.stride[0]};
}

// How many chunks a call has, before anything is checked.
int64_t chunk_count(const PackedSequences& sequences);
int64_t chunk_count(const PagedSequences& sequences);

// Checks the description against the rows of queries and keys, and writes the chunks.
Status resolve_chunks(const char* op, const PackedSequences& sequences, int64_t queries, int64_t keys, Chunk* chunks);
Status resolve_chunks(const char* op, const PagedSequences& sequences, int64_t queries, int64_t pages, int64_t block_size, Chunk* chunks);

struct Extent {
  int64_t queries = 0;  // of the longest chunk
  int64_t keys = 0;     // most keys that any query sees
};
Extent extent_of(const Chunk* chunks, int64_t count);

// Writes the number of tasks before each chunk, when `parts` tasks take tokens_per_task queries of a chunk; returns the total.
// first_task has count + 1 elements.
int64_t count_tasks(const Chunk* chunks, int64_t count, int64_t tokens_per_task, int64_t parts, int64_t* first_task);

// What a task over keys needs to find its document and those that see it. Arrays of documents + 1 elements.
struct KeyTasks {
  const int32_t* document_starts;
  int64_t* first_task;       // tasks before each document, when `parts` tasks take keys_per_task keys
  int64_t* document_chunks;  // chunks before each document
  int64_t documents;
};
int64_t document_count(const PackedSequences& sequences);
int64_t count_key_tasks(const KeyTasks& tasks, const Chunk* chunks, int64_t count, int64_t keys_per_task, int64_t parts);

inline PageMap page_map(const PackedSequences&) { return {nullptr, 0, 1}; }
inline PageMap page_map(const PagedSequences& sequences, int64_t block_size) {
  return {sequences.block_table.as<int32_t>(), sequences.block_table.stride[0], block_size};
}

// Rows of keys for references: `page` is 0 where keys are packed.
struct KeyPlace {
  int64_t page, row;
};
inline KeyPlace key_place(const PageMap& map, const Chunk& chunk, int64_t position) {
  if (map.block_table == nullptr) return {0, chunk.key_begin + position};
  return {map.block_table[chunk.document * map.table_stride + position / map.block_size], position % map.block_size};
}

}  // namespace trilithon
