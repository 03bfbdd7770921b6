// The indexer of DSA: scores of keys by a few small heads, and the top-k of them as lists for MLA attention. README.md has the
// mathematics and the order of every sum.
#pragma once

#include "include/kernels.h"
#include "include/sequences.h"

namespace trilithon::dsa_indexer {

struct Select {
  static constexpr const char* op = "dsa-indexer";
  static constexpr const char* name = "dsa-indexer.select";
  static constexpr const char* summary =
      "Positions of the top_k keys of each query by index score, ascending; a tie goes to the lower position.";

  TensorView q, k, weights, indices, counts;
  PackedSequences sequences;
  double scale = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("q", q, floats, "[queries, index_heads, width]", strided_heads | maybe_empty);
    v.input("k", k, floats, "[keys, width]", strided_rows);
    v.input("weights", weights, floats, "[queries, index_heads]", strided_rows | maybe_empty);
    sequences.visit(v);
    v.output("indices", indices, only(DType::i32), "[queries, top_k]", maybe_empty);
    v.output("counts", counts, only(DType::i32), "[queries]", maybe_empty);
    v.number("scale", scale);
  }
};

struct SelectPaged {
  static constexpr const char* op = "dsa-indexer";
  static constexpr const char* name = "dsa-indexer.select-paged";
  static constexpr const char* summary = "dsa-indexer.select for the last queries of sequences whose keys lie in pages.";

  TensorView q, k_pages, weights, indices, counts;
  PagedSequences sequences;
  double scale = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("q", q, floats, "[queries, index_heads, width]", strided_heads);
    v.input("k_pages", k_pages, floats, "[pages, block_size, width]", strided_rows);
    v.input("weights", weights, floats, "[queries, index_heads]", strided_rows);
    sequences.visit(v);
    v.output("indices", indices, only(DType::i32), "[queries, top_k]");
    v.output("counts", counts, only(DType::i32), "[queries]");
    v.number("scale", scale);
  }
};

struct Scores {
  static constexpr const char* op = "dsa-indexer";
  static constexpr const char* name = "dsa-indexer.scores";
  static constexpr const char* summary = "Index scores of given keys; 0 where a list has no entry.";

  TensorView q, k, weights, scores;
  PackedSequences sequences;
  ChosenKeys chosen;
  double scale = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("q", q, floats, "[queries, index_heads, width]", strided_heads | maybe_empty);
    v.input("k", k, floats, "[keys, width]", strided_rows);
    v.input("weights", weights, floats, "[queries, index_heads]", strided_rows | maybe_empty);
    sequences.visit(v);
    chosen.visit(v, maybe_empty);
    v.output("scores", scores, floats, "[queries, top_k]", maybe_empty);
    v.number("scale", scale);
  }
};

struct ScoresBackward {
  static constexpr const char* op = "dsa-indexer";
  static constexpr const char* name = "dsa-indexer.scores-backward";
  static constexpr const char* summary = "Gradients of dsa-indexer.scores by q, k and weights; the lists are constant.";

  TensorView d_scores, q, k, weights, d_q, d_k, d_weights;
  PackedSequences sequences;
  ChosenKeys chosen;
  double scale = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_scores", d_scores, floats, "[queries, top_k]", maybe_empty);
    v.input("q", q, floats, "[queries, index_heads, width]", strided_heads | maybe_empty);
    v.input("k", k, floats, "[keys, width]", strided_rows);
    v.input("weights", weights, floats, "[queries, index_heads]", strided_rows | maybe_empty);
    sequences.visit(v);
    chosen.visit(v, maybe_empty);
    v.output("d_q", d_q, floats, "[queries, index_heads, width]", strided_heads | maybe_empty);
    v.output("d_k", d_k, floats, "[keys, width]", strided_rows);
    v.output("d_weights", d_weights, floats, "[queries, index_heads]", strided_rows | maybe_empty);
    v.number("scale", scale);
  }
};

Status run(const Select& args, Runtime& runtime);
Status run(const SelectPaged& args, Runtime& runtime);
Status run(const Scores& args, Runtime& runtime);
Status run(const ScoresBackward& args, Runtime& runtime);

// `k` is rows of keys, or pages of them, as `pages` says.
template <typename T>
void select_reference(const TensorView& q, const TensorView& k, const TensorView& weights, const PageMap& pages, const Chunk* chunks,
                      int64_t chunk_count, double scale, const TensorView& indices, const TensorView& counts);
template <typename T>
void scores_reference(const Scores& args, const Chunk* chunks, int64_t chunk_count);
template <typename T>
void scores_backward_reference(const ScoresBackward& args, const Chunk* chunks, int64_t chunk_count);

// What the kernels see: plain pointers and sizes; strides in elements.
struct Sizes {
  int64_t heads, width, top_k;
  int64_t tokens_per_task;
  int64_t keys_per_task;  // backward
  float scale;
};

struct SelectParams {
  Sizes sizes;
  Heads q;
  const float* weights;
  int64_t weight_stride;
  KeyRows k;
  PageMap pages;
  int32_t* indices;  // [queries, top_k]
  int32_t* counts;
  const Chunk* chunks;
  const int64_t* first_task;  // [chunks + 1] tasks before each chunk
  int64_t chunk_count;
  // Split over segments of keys, with one query per task: all scores of the query of each task.
  float* task_scores;
  int64_t segments;
};

struct ScoresParams {
  Sizes sizes;
  Heads q, d_q;
  const float* weights;
  int64_t weight_stride;
  float* d_weights;
  int64_t d_weight_stride;
  KeyRows k;
  float* d_k;
  int64_t d_k_stride;
  ChosenRows chosen;
  float* scores;          // [queries, top_k]
  const float* d_scores;  // [queries, top_k]
  const Chunk* chunks;
  const int64_t* first_task;  // [chunks + 1]
  int64_t chunk_count;
  KeyTasks key_tasks;
};

struct Kernels {
  // How work is best cut. `sparse`: most queries see listed keys only.
  int64_t (*tokens_per_task)(const Sizes& sizes);
  int64_t (*segment_keys)();
  int64_t (*keys_per_task)(bool sparse);
  int64_t (*select_scratch)(const Sizes& sizes);
  int64_t (*scores_scratch)(const Sizes& sizes);
  void (*select)(const SelectParams& params, int64_t task_begin, int64_t task_end, void* scratch);
  void (*score_segment)(const SelectParams& params, int64_t item_begin, int64_t item_end, void* scratch);
  void (*select_scored)(const SelectParams& params, int64_t task_begin, int64_t task_end, void* scratch);
  void (*scores)(const ScoresParams& params, int64_t task_begin, int64_t task_end, void* scratch);
  void (*backward_queries)(const ScoresParams& params, int64_t task_begin, int64_t task_end, void* scratch);
  void (*backward_keys)(const ScoresParams& params, int64_t task_begin, int64_t task_end, void* scratch);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::dsa_indexer
