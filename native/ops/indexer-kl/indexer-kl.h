// Training loss of the DSA indexer: KL divergence of its softmax from the attention that MLA pays, summed over heads. README.md has
// the mathematics and the order of every sum.
#pragma once

#include "include/kernels.h"
#include "include/sequences.h"

namespace trilithon::indexer_kl {

// What both entries take.
struct Inputs {
  TensorView index_q, index_k, index_weights, q, q_rope, latent, rope, lse;
  PackedSequences sequences;
  ChosenKeys chosen;
  double index_scale = 0, scale = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("index_q", index_q, floats, "[queries, index_heads, index_width]", strided_heads | maybe_empty);
    v.input("index_k", index_k, floats, "[keys, index_width]", strided_rows);
    v.input("index_weights", index_weights, floats, "[queries, index_heads]", strided_rows | maybe_empty);
    v.input("q", q, floats, "[queries, heads, latent_width]", strided_heads | maybe_empty);
    v.input("q_rope", q_rope, floats, "[queries, heads, rope_width]", strided_heads | maybe_empty);
    v.input("latent", latent, floats, "[keys, latent_width]", strided_rows);
    v.input("rope", rope, floats, "[keys, rope_width]", strided_rows);
    v.input("lse", lse, floats, "[queries, heads]", maybe_empty);
    sequences.visit(v);
    chosen.visit(v, optional | maybe_empty);
    v.number("index_scale", index_scale);
    v.number("scale", scale);
  }
};

struct Forward {
  static constexpr const char* op = "indexer-kl";
  static constexpr const char* name = "indexer-kl.forward";
  static constexpr const char* summary = "KL(attention of all heads || softmax of index scores) per query, over the chosen keys or all.";

  Inputs in;
  TensorView kl, index_lse, target_sum;

  template <typename Visitor>
  void visit(Visitor& v) {
    in.visit(v);
    v.output("kl", kl, floats, "[queries]", maybe_empty);
    v.output("index_lse", index_lse, floats, "[queries]", maybe_empty);
    v.output("target_sum", target_sum, floats, "[queries]", maybe_empty);
  }
};

struct Backward {
  static constexpr const char* op = "indexer-kl";
  static constexpr const char* name = "indexer-kl.backward";
  static constexpr const char* summary =
      "Gradients of indexer-kl.forward by index_q, index_k and index_weights; the attention is constant.";

  TensorView d_kl;
  Inputs in;
  TensorView index_lse, target_sum, d_index_q, d_index_k, d_index_weights;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_kl", d_kl, floats, "[queries]", maybe_empty);
    in.visit(v);
    v.input("index_lse", index_lse, floats, "[queries]", maybe_empty);
    v.input("target_sum", target_sum, floats, "[queries]", maybe_empty);
    v.output("d_index_q", d_index_q, floats, "[queries, index_heads, index_width]", strided_heads | maybe_empty);
    v.output("d_index_k", d_index_k, floats, "[keys, index_width]", strided_rows);
    v.output("d_index_weights", d_index_weights, floats, "[queries, index_heads]", strided_rows | maybe_empty);
  }
};

Status run(const Forward& args, Runtime& runtime);
Status run(const Backward& args, Runtime& runtime);

template <typename T>
void forward_reference(const Forward& args, const Chunk* chunks, int64_t chunk_count);
template <typename T>
void backward_reference(const Backward& args, const Chunk* chunks, int64_t chunk_count);

// What the kernels see: plain pointers and sizes; strides in elements.
struct Sizes {
  int64_t index_heads, index_width, heads, latent_width, rope_width;
  int64_t tokens_per_task;
  int64_t keys_per_task;  // backward
  float index_scale, scale;
};

struct Params {
  Sizes sizes;
  Heads index_q, q, q_rope;
  const float* index_weights;
  int64_t index_weight_stride;
  KeyRows index_k, latent, rope;
  const float* lse;  // [queries, heads]
  ChosenRows chosen;
  const Chunk* chunks;
  const int64_t* first_task;  // [chunks + 1] tasks before each chunk
  int64_t chunk_count;
  float *kl, *index_lse, *target_sum;  // [queries]; the last two are read backward
  const float* d_kl;
  Heads d_index_q;
  float *d_index_k, *d_index_weights;
  int64_t d_index_k_stride, d_index_weight_stride;
  KeyTasks key_tasks;
};

struct Kernels {
  // How work is best cut. `sparse`: most queries see listed keys only.
  int64_t (*tokens_per_task)(const Sizes& sizes);
  int64_t (*keys_per_task)(bool sparse);
  int64_t (*scratch)(const Sizes& sizes);
  void (*forward)(const Params& params, int64_t task_begin, int64_t task_end, void* scratch);
  void (*backward_queries)(const Params& params, int64_t task_begin, int64_t task_end, void* scratch);
  void (*backward_keys)(const Params& params, int64_t task_begin, int64_t task_end, void* scratch);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::indexer_kl
