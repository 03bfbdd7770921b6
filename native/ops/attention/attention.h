// Causal attention with grouped heads: packed documents (forward, backward) and keys in pages (forward). README.md has the
// mathematics and the order of every sum.
#pragma once

#include "include/kernels.h"
#include "include/sequences.h"

namespace trilithon::attention {

struct Forward {
  static constexpr const char* op = "attention";
  static constexpr const char* name = "attention.forward";
  static constexpr const char* summary = "Causal attention within packed documents; query head h reads key head h / (heads / kv_heads).";

  TensorView q, k, v, out, lse;
  PackedSequences sequences;
  double scale = 0;

  template <typename Visitor>
  void visit(Visitor& visitor) {
    visitor.input("q", q, floats, "[queries, heads, width]", strided_heads | maybe_empty);
    visitor.input("k", k, floats, "[keys, kv_heads, width]", strided_heads);
    visitor.input("v", v, floats, "[keys, kv_heads, value_width]", strided_heads);
    sequences.visit(visitor);
    visitor.output("out", out, floats, "[queries, heads, value_width]", strided_rows | maybe_empty);
    visitor.output("lse", lse, floats, "[queries, heads]", optional | maybe_empty);
    visitor.number("scale", scale);
  }
};

struct Backward {
  static constexpr const char* op = "attention";
  static constexpr const char* name = "attention.backward";
  static constexpr const char* summary = "Gradients of attention.forward by q, k and v, from its out and lse.";

  TensorView d_out, q, k, v, out, lse, d_q, d_k, d_v;
  PackedSequences sequences;
  double scale = 0;

  template <typename Visitor>
  void visit(Visitor& visitor) {
    visitor.input("d_out", d_out, floats, "[queries, heads, value_width]", strided_rows | maybe_empty);
    visitor.input("q", q, floats, "[queries, heads, width]", strided_heads | maybe_empty);
    visitor.input("k", k, floats, "[keys, kv_heads, width]", strided_heads);
    visitor.input("v", v, floats, "[keys, kv_heads, value_width]", strided_heads);
    visitor.input("out", out, floats, "[queries, heads, value_width]", strided_rows | maybe_empty);
    visitor.input("lse", lse, floats, "[queries, heads]", maybe_empty);
    sequences.visit(visitor);
    visitor.output("d_q", d_q, floats, "[queries, heads, width]", strided_heads | maybe_empty);
    visitor.output("d_k", d_k, floats, "[keys, kv_heads, width]", strided_heads);
    visitor.output("d_v", d_v, floats, "[keys, kv_heads, value_width]", strided_heads);
    visitor.number("scale", scale);
  }
};

struct Paged {
  static constexpr const char* op = "attention";
  static constexpr const char* name = "attention.paged";
  static constexpr const char* summary = "attention.forward for the last queries of sequences whose keys lie in pages, bit for bit.";

  TensorView q, k_pages, v_pages, out, lse;
  PagedSequences sequences;
  double scale = 0;

  template <typename Visitor>
  void visit(Visitor& visitor) {
    visitor.input("q", q, floats, "[queries, heads, width]", strided_heads);
    visitor.input("k_pages", k_pages, floats, "[pages, block_size, kv_heads, width]", strided_rows);
    visitor.input("v_pages", v_pages, floats, "[pages, block_size, kv_heads, value_width]", strided_rows);
    sequences.visit(visitor);
    visitor.output("out", out, floats, "[queries, heads, value_width]", strided_rows);
    visitor.output("lse", lse, floats, "[queries, heads]", optional);
    visitor.number("scale", scale);
  }
};

Status run(const Forward& args, Runtime& runtime);
Status run(const Backward& args, Runtime& runtime);
Status run(const Paged& args, Runtime& runtime);

// `k` and `v` are rows of keys, or pages of them, as `pages` says.
template <typename T>
void forward_reference(const TensorView& q, const TensorView& k, const TensorView& v, const PageMap& pages, const Chunk* chunks,
                       int64_t chunk_count, double scale, const TensorView& out, const TensorView& lse);
template <typename T>
void backward_reference(const Backward& args, const Chunk* chunks, int64_t chunk_count);

// What the kernels see: plain pointers and sizes; strides in elements.
struct Sizes {
  int64_t heads, kv_heads, width, value_width;
  int64_t tokens_per_task;  // queries that one task takes, each with all heads that share a key head
  float scale;
};

struct PagedHeads {
  const float* data;
  int64_t row_stride, head_stride, page_stride;
};

struct ForwardParams {
  Sizes sizes;
  Heads q, out;
  PagedHeads k, v;
  PageMap pages;
  float* lse;  // [queries, heads] or null
  const Chunk* chunks;
  const int64_t* first_task;  // [chunks + 1] tasks before each chunk
  int64_t chunk_count;
  // Split over segments of keys: partial results, one region per task and segment.
  char* partials;
  int64_t partial_bytes, segments;
};

struct BackwardParams {
  Sizes sizes;
  Heads d_out, q, out, d_q, d_k, d_v;
  PagedHeads k, v;
  const float* lse;
  float* delta;  // [queries, heads]
  const Chunk* chunks;
  const int64_t* first_task;  // [chunks + 1]
  int64_t chunk_count;
  KeyTasks key_tasks;
};

struct Kernels {
  // How work is best cut: queries of a task, keys of a segment, keys of a backward task.
  int64_t (*tokens_per_task)(const Sizes& sizes);
  int64_t (*segment_keys)();
  int64_t (*keys_per_task)();
  int64_t (*forward_scratch)(const Sizes& sizes);
  int64_t (*partial_bytes)(const Sizes& sizes);
  int64_t (*backward_scratch)(const Sizes& sizes);
  void (*forward)(const ForwardParams& params, int64_t task_begin, int64_t task_end, void* scratch);
  void (*forward_segment)(const ForwardParams& params, int64_t item_begin, int64_t item_end, void* scratch);
  void (*forward_combine)(const ForwardParams& params, int64_t task_begin, int64_t task_end, void* scratch);
  void (*delta)(const BackwardParams& params, int64_t query_begin, int64_t query_end);
  void (*backward_queries)(const BackwardParams& params, int64_t task_begin, int64_t task_end, void* scratch);
  void (*backward_keys)(const BackwardParams& params, int64_t task_begin, int64_t task_end, void* scratch);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::attention
