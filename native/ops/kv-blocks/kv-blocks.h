// Moves KV blocks: rows of new tokens into pages, blocks between pages and contiguous slots of bytes. Values are copied, never read.
#pragma once

#include "include/op.h"
#include "include/sequences.h"

namespace trilithon::kv_blocks {

inline constexpr DTypeSet any_dtype{(1u << dtype_count) - 1};

struct Append {
  static constexpr const char* op = "kv-blocks";
  static constexpr const char* name = "kv-blocks.append";
  static constexpr const char* summary = "Copies the rows of new tokens to their places in pages; other places stay as they are.";

  TensorView rows, pages;
  PagedSequences sequences;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("rows", rows, any_dtype, "[queries, ...]", strided_rows);
    sequences.visit(v);
    v.inout("pages", pages, any_dtype, "[pages, block_size, ...]", strided_rows);
  }
};

struct Gather {
  static constexpr const char* op = "kv-blocks";
  static constexpr const char* name = "kv-blocks.gather";
  static constexpr const char* summary = "Copies pages into slots: of each part (layer) one after another, from byte `offset` of the slot.";

  TensorView pages, ids, slots;
  int64_t offset = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("pages", pages, any_dtype, "[parts, pages, width]", strided_rows);
    v.input("ids", ids, only(DType::i32), "[blocks]");
    v.inout("slots", slots, only(DType::u8), "[blocks, slot_bytes]", strided_rows);
    v.integer("offset", offset);
  }
};

struct Scatter {
  static constexpr const char* op = "kv-blocks";
  static constexpr const char* name = "kv-blocks.scatter";
  static constexpr const char* summary = "Copies slots into pages, the inverse of kv-blocks.gather; other pages stay as they are.";

  TensorView slots, ids, pages;
  int64_t offset = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("slots", slots, only(DType::u8), "[blocks, slot_bytes]", strided_rows);
    v.input("ids", ids, only(DType::i32), "[blocks]");
    v.inout("pages", pages, any_dtype, "[parts, pages, width]", strided_rows);
    v.integer("offset", offset);
  }
};

Status run(const Append& args, Runtime& runtime);
Status run(const Gather& args, Runtime& runtime);
Status run(const Scatter& args, Runtime& runtime);

// Byte by byte.
void append_reference(const Append& args, const Chunk* chunks, int64_t chunk_count);
void move_reference(const TensorView& pages, const TensorView& ids, const TensorView& slots, int64_t offset, bool to_slots);

}  // namespace trilithon::kv_blocks
