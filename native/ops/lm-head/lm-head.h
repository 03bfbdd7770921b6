// Fused LM head: log-probability of given tokens and entropy from hidden rows, without ever holding [tokens, vocabulary].
// README.md has the mathematics.
#pragma once

#include "include/kernels.h"
#include "include/op.h"
#include "isa/gemm-plan.h"

namespace trilithon::lm_head {

// Sums over the vocabulary are taken in chunks of so many tokens and then over the chunks: a constant of the op.
inline constexpr int64_t vocabulary_chunk = 512;
static_assert(vocabulary_chunk == block_columns, "a chunk is one block of the product");

struct Forward {
  static constexpr const char* op = "lm-head";
  static constexpr const char* name = "lm-head.forward";
  static constexpr const char* summary =
      "Log-probability of each row's target under softmax(hidden * transposed(weight) / temperature), and the entropy.";

  TensorView hidden, weight, packed, targets, temperature, logprob, entropy, stats;
  int64_t vocabulary = 0;  // of a packed weight, whose last panel may hold absent tokens; with `weight`, 0 or its rows

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("hidden", hidden, floats, "[tokens, width]", strided_rows);
    v.input("weight", weight, floats, "[vocabulary, width]", optional | strided_rows);
    v.input("packed", packed, floats, "[panels of vocabulary, width, 32]", optional);
    v.input("targets", targets, only(DType::i32), "[tokens]");
    v.input("temperature", temperature, floats, "[tokens]");
    v.output("logprob", logprob, floats, "[tokens]");
    v.output("entropy", entropy, floats, "[tokens]", optional);
    v.output("stats", stats, floats, "[tokens, 2]", optional);
    v.integer("vocabulary", vocabulary);
  }
};

struct Backward {
  static constexpr const char* op = "lm-head";
  static constexpr const char* name = "lm-head.backward";
  static constexpr const char* summary = "Gradients of hidden and weight from those of the log-probabilities; accumulate adds to d_weight.";

  TensorView d_logprob, hidden, weight, targets, temperature, stats, d_hidden, d_weight;
  bool accumulate = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_logprob", d_logprob, floats, "[tokens]");
    v.input("hidden", hidden, floats, "[tokens, width]", strided_rows);
    v.input("weight", weight, floats, "[vocabulary, width]", strided_rows);
    v.input("targets", targets, only(DType::i32), "[tokens]");
    v.input("temperature", temperature, floats, "[tokens]");
    v.input("stats", stats, floats, "[tokens, 2]");
    v.output("d_hidden", d_hidden, floats, "[tokens, width]", optional | strided_rows);
    v.inout("d_weight", d_weight, floats, "[vocabulary, width]", optional | strided_rows);
    v.flag("accumulate", accumulate);
  }
};

Status run(const Forward& args, Runtime& runtime);
Status run(const Backward& args, Runtime& runtime);

template <typename T>
void forward_reference(const Forward& args);
template <typename T>
void backward_reference(const Backward& args);

// The weight of a token, from either form.
template <typename T>
T weight_element(const TensorView& weight, const TensorView& packed, int64_t token, int64_t i) {
  return weight.present() ? weight.at<T>(token, i) : packed.at<T>(token / 32, i, token % 32);
}

// Hidden rows and the weight, for the logits of some rows and one chunk of the vocabulary.
struct LogitsParams {
  const float* hidden;
  const float* weight;  // [vocabulary, width], or panels
  int64_t hidden_stride, weight_stride, width, vocabulary;
  bool packed;
};

// Sums of a row's chunks, [chunks] each: see log-softmax.h.
struct ChunkArrays {
  float* tops;
  float* sums;
  float* weighted;
};

struct ForwardParams {
  LogitsParams logits;
  const int32_t* targets;
  const float* temperature;
  float* partials;       // [rows, 3, chunks]
  float* target_logits;  // [rows]
  int64_t chunks;
  float* logprob;
  float* entropy;  // may be null
  float* stats;    // may be null
};

struct BackwardParams {
  LogitsParams logits;
  const int32_t* targets;
  const float* temperature;
  const float* stats;
  const float* d_logprob;
  float* d_logits;  // [rows, d_logits_stride], of the chunks from first_chunk on
  int64_t d_logits_stride, first_chunk;
};

struct Kernels {
  // Sums of one chunk for some rows; scratch as product_scratch_bytes, then rows * vocabulary_chunk floats.
  void (*sums)(const ForwardParams& params, int64_t row_begin, int64_t row_end, int64_t chunk, float* scratch);
  void (*finish)(const ForwardParams& params, int64_t row_begin, int64_t row_end);
  // Gradients of the logits of one chunk for some rows; scratch as product_scratch_bytes.
  void (*d_logits)(const BackwardParams& params, int64_t row_begin, int64_t row_end, int64_t chunk, float* scratch);
  void (*product)(const Product& product, const Block& block, float* scratch);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::lm_head
