// The next token of each row and its log-probability, from logits or from hidden rows. README.md has the definitions.
#pragma once

#include "include/kernels.h"
#include "include/op.h"
#include "ops/lm-head/lm-head.h"

namespace trilithon::sampling {

// How to choose, row by row.
struct Rules {
  TensorView temperature, top_k, top_p, min_p, seeds, positions;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("temperature", temperature, floats, "[rows]");
    v.input("top_k", top_k, only(DType::i32), "[rows]", optional);
    v.input("top_p", top_p, floats, "[rows]", optional);
    v.input("min_p", min_p, floats, "[rows]", optional);
    v.input("seeds", seeds, only(DType::i64), "[rows]");
    v.input("positions", positions, only(DType::i32), "[rows]");
  }
};

struct FromLogits {
  static constexpr const char* op = "sampling";
  static constexpr const char* name = "sampling.from-logits";
  static constexpr const char* summary = "Chooses a token per row of logits; its log-probability is that of lm-head for the same logits.";

  TensorView logits;
  Rules rules;
  TensorView tokens, logprob;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("logits", logits, floats, "[rows, vocabulary]", strided_rows);
    rules.visit(v);
    v.output("tokens", tokens, only(DType::i32), "[rows]");
    v.output("logprob", logprob, floats, "[rows]");
  }
};

struct FromHidden {
  static constexpr const char* op = "sampling";
  static constexpr const char* name = "sampling.from-hidden";
  static constexpr const char* summary = "Chooses a token per hidden row from hidden * transposed(weight), without storing all logits.";

  TensorView hidden, weight, packed;
  Rules rules;
  TensorView tokens, logprob;
  int64_t vocabulary = 0;  // as in lm-head.forward

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("hidden", hidden, floats, "[rows, width]", strided_rows);
    v.input("weight", weight, floats, "[vocabulary, width]", optional | strided_rows);
    v.input("packed", packed, floats, "[panels of vocabulary, width, 32]", optional);
    rules.visit(v);
    v.output("tokens", tokens, only(DType::i32), "[rows]");
    v.output("logprob", logprob, floats, "[rows]");
    v.integer("vocabulary", vocabulary);
  }
};

Status run(const FromLogits& args, Runtime& runtime);
Status run(const FromHidden& args, Runtime& runtime);

// Both return the first row whose logits have NaN, +infinity or nothing finite, or -1.
template <typename T>
int64_t from_logits_reference(const FromLogits& args);
template <typename T>
int64_t from_hidden_reference(const FromHidden& args);

// The rules of one row.
struct RowRules {
  double temperature, top_p, min_p;
  int64_t top_k;  // 0: all
  double uniform;

  bool greedy() const { return temperature == 0; }
};

// Reads the rules of a row and gives left-out ones their neutral value.
RowRules rules_of(const Rules& rules, int64_t row, int64_t vocabulary);

// Largest z of a row and the logarithm of its sum, as ops/lm-head/log-softmax.h has them.
struct RowSums {
  float top, log_sum;
};

struct Candidate {
  float logit;
  int32_t token;
};

struct Row {
  const float* logits;
  int64_t vocabulary;
  float scale;        // 1 / temperature
  const float* tops;  // largest z of each chunk
  int64_t chunks;
  RowSums sums;
};

// Memory for one choice: [vocabulary] each, and the chunks' tops once more.
struct ChoiceScratch {
  float* weights;
  Candidate* candidates;
  int32_t* kept;
  float* tops;
};

struct Kernels {
  // Logits of some hidden rows and one chunk, into logits [rows, vocabulary], and their sums.
  void (*hidden_sums)(const lm_head::LogitsParams& params, int64_t rows, int64_t chunk, const float* scales, float* logits, float* partials,
                      int64_t chunks, float* scratch);
  // Sums of all chunks of one row of logits; partials [3, chunks].
  void (*logit_sums)(const float* logits, int64_t vocabulary, float scale, float* partials, int64_t chunks);
  RowSums (*combine)(const float* partials, int64_t chunks);
  // e^(z - top) of a row.
  void (*weights)(const float* logits, int64_t count, float scale, float top, float* weights);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::sampling
