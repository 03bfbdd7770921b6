// Absorbed multi-head latent attention: every head reads one shared latent row per token, all of them or chosen ones (DSA).
// README.md has the mathematics and the order of every sum.
#pragma once

#include "include/kernels.h"
#include "include/sequences.h"

namespace trilithon::mla_attention {

struct Forward {
  static constexpr const char* op = "mla-attention";
  static constexpr const char* name = "mla-attention.forward";
  static constexpr const char* summary =
      "Causal attention of absorbed queries over latent rows of packed documents: all, or the chosen keys.";

  TensorView q, q_rope, latent, rope, out, lse;
  PackedSequences sequences;
  ChosenKeys chosen;
  double scale = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("q", q, floats, "[queries, heads, latent_width]", strided_heads | maybe_empty);
    v.input("q_rope", q_rope, floats, "[queries, heads, rope_width]", strided_heads | maybe_empty);
    v.input("latent", latent, floats, "[keys, latent_width]", strided_rows);
    v.input("rope", rope, floats, "[keys, rope_width]", strided_rows);
    sequences.visit(v);
    chosen.visit(v, optional | maybe_empty);
    v.output("out", out, floats, "[queries, heads, latent_width]", strided_rows | maybe_empty);
    v.output("lse", lse, floats, "[queries, heads]", optional | maybe_empty);
    v.number("scale", scale);
  }
};

struct Backward {
  static constexpr const char* op = "mla-attention";
  static constexpr const char* name = "mla-attention.backward";
  static constexpr const char* summary = "Gradients of mla-attention.forward by q, q_rope, latent and rope, from its out and lse.";

  TensorView d_out, q, q_rope, latent, rope, out, lse, d_q, d_q_rope, d_latent, d_rope;
  PackedSequences sequences;
  ChosenKeys chosen;
  double scale = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_out", d_out, floats, "[queries, heads, latent_width]", strided_rows | maybe_empty);
    v.input("q", q, floats, "[queries, heads, latent_width]", strided_heads | maybe_empty);
    v.input("q_rope", q_rope, floats, "[queries, heads, rope_width]", strided_heads | maybe_empty);
    v.input("latent", latent, floats, "[keys, latent_width]", strided_rows);
    v.input("rope", rope, floats, "[keys, rope_width]", strided_rows);
    v.input("out", out, floats, "[queries, heads, latent_width]", strided_rows | maybe_empty);
    v.input("lse", lse, floats, "[queries, heads]", maybe_empty);
    sequences.visit(v);
    chosen.visit(v, optional | maybe_empty);
    v.output("d_q", d_q, floats, "[queries, heads, latent_width]", strided_heads | maybe_empty);
    v.output("d_q_rope", d_q_rope, floats, "[queries, heads, rope_width]", strided_heads | maybe_empty);
    v.output("d_latent", d_latent, floats, "[keys, latent_width]", strided_rows);
    v.output("d_rope", d_rope, floats, "[keys, rope_width]", strided_rows);
    v.number("scale", scale);
  }
};

struct Paged {
  static constexpr const char* op = "mla-attention";
  static constexpr const char* name = "mla-attention.paged";
  static constexpr const char* summary = "mla-attention.forward for the last queries of sequences whose keys lie in pages, bit for bit.";

  TensorView q, q_rope, latent_pages, rope_pages, out, lse;
  PagedSequences sequences;
  ChosenKeys chosen;
  double scale = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("q", q, floats, "[queries, heads, latent_width]", strided_heads);
    v.input("q_rope", q_rope, floats, "[queries, heads, rope_width]", strided_heads);
    v.input("latent_pages", latent_pages, floats, "[pages, block_size, latent_width]", strided_rows);
    v.input("rope_pages", rope_pages, floats, "[pages, block_size, rope_width]", strided_rows);
    sequences.visit(v);
    chosen.visit(v, optional);
    v.output("out", out, floats, "[queries, heads, latent_width]", strided_rows);
    v.output("lse", lse, floats, "[queries, heads]", optional);
    v.number("scale", scale);
  }
};

Status run(const Forward& args, Runtime& runtime);
Status run(const Backward& args, Runtime& runtime);
Status run(const Paged& args, Runtime& runtime);

// `latent` and `rope` are rows of keys, or pages of them, as `pages` says.
template <typename T>
void forward_reference(const TensorView& q, const TensorView& q_rope, const TensorView& latent, const TensorView& rope,
                       const PageMap& pages, const ChosenKeys& chosen, const Chunk* chunks, int64_t chunk_count, double scale,
                       const TensorView& out, const TensorView& lse);
template <typename T>
void backward_reference(const Backward& args, const Chunk* chunks, int64_t chunk_count);

// What the kernels see: plain pointers and sizes; strides in elements.
struct Sizes {
  int64_t heads, latent_width, rope_width;
  int64_t tokens_per_task;
  int64_t keys_per_task;  // backward
  float scale;
};

struct ForwardParams {
  Sizes sizes;
  Heads q, q_rope, out;
  KeyRows latent, rope;
  PageMap pages;
  ChosenRows chosen;
  float* lse;  // [queries, heads] or null
  const Chunk* chunks;
  const int64_t* first_task;  // [chunks + 1] tasks before each chunk
  int64_t chunk_count;
  // Split over segments of keys, with one query per task: partial results, one region per task and segment.
  char* partials;
  int64_t partial_bytes, segments;
};

struct BackwardParams {
  Sizes sizes;
  Heads d_out, q, q_rope, out, d_q, d_q_rope;
  KeyRows latent, rope;
  float *d_latent, *d_rope;
  int64_t d_latent_stride, d_rope_stride;
  ChosenRows chosen;
  const float* lse;
  float* delta;  // [queries, heads]
  const Chunk* chunks;
  const int64_t* first_task;  // [chunks + 1]
  int64_t chunk_count;
  KeyTasks key_tasks;
};

struct Kernels {
  // How work is best cut. `sparse`: most queries see chosen keys only.
  int64_t (*tokens_per_task)(const Sizes& sizes);
  int64_t (*segment_keys)();
  int64_t (*keys_per_task)(bool sparse);
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

}  // namespace trilithon::mla_attention
