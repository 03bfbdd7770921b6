// Which experts a token goes to, and with what weights; chosen here or given (replay). README.md has the mathematics.
#pragma once

#include "include/kernels.h"
#include "include/op.h"
#include "ops/moe-router/expert-ids.h"

namespace trilithon::moe_router {

inline constexpr int64_t most_experts_per_token = 64;

struct SoftmaxForward {
  static constexpr const char* op = "moe-router";
  static constexpr const char* name = "moe-router.softmax-forward";
  static constexpr const char* summary =
      "Top-k experts by logit, or the given ones, with softmax weights; renormalise divides by the sum over the chosen.";

  TensorView logits, given, ids, weights;
  bool renormalise = false, select_missing = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("logits", logits, floats, "[tokens, experts]", strided_rows);
    v.input("given", given, id_types, "[tokens, top_k]", optional);
    v.output("ids", ids, id_types, "[tokens, top_k]");
    v.output("weights", weights, floats, "[tokens, top_k]");
    v.flag("renormalise", renormalise);
    v.flag("select_missing", select_missing);
  }
};

struct SoftmaxBackward {
  static constexpr const char* op = "moe-router";
  static constexpr const char* name = "moe-router.softmax-backward";
  static constexpr const char* summary = "Gradient of the logits through the weights of the chosen experts.";

  TensorView d_weights, logits, ids, d_logits;
  bool renormalise = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_weights", d_weights, floats, "[tokens, top_k]");
    v.input("logits", logits, floats, "[tokens, experts]", strided_rows);
    v.input("ids", ids, id_types, "[tokens, top_k]");
    v.output("d_logits", d_logits, floats, "[tokens, experts]", strided_rows);
    v.flag("renormalise", renormalise);
  }
};

struct SigmoidForward {
  static constexpr const char* op = "moe-router";
  static constexpr const char* name = "moe-router.sigmoid-forward";
  static constexpr const char* summary =
      "Top-k experts by sigmoid(logit) + bias within the best groups, or the given ones; weights are sigmoids times scale.";

  TensorView logits, bias, given, ids, weights;
  int64_t groups = 1, groups_kept = 1;
  bool normalise = false, select_missing = false;
  double scale = 1;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("logits", logits, floats, "[tokens, experts]", strided_rows);
    v.input("bias", bias, floats, "[experts]", optional);
    v.input("given", given, id_types, "[tokens, top_k]", optional);
    v.output("ids", ids, id_types, "[tokens, top_k]");
    v.output("weights", weights, floats, "[tokens, top_k]");
    v.integer("groups", groups);
    v.integer("groups_kept", groups_kept);
    v.flag("normalise", normalise);
    v.number("scale", scale);
    v.flag("select_missing", select_missing);
  }
};

struct SigmoidBackward {
  static constexpr const char* op = "moe-router";
  static constexpr const char* name = "moe-router.sigmoid-backward";
  static constexpr const char* summary = "Gradient of the logits through the weights of the chosen experts.";

  TensorView d_weights, logits, ids, d_logits;
  bool normalise = false;
  double scale = 1;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_weights", d_weights, floats, "[tokens, top_k]");
    v.input("logits", logits, floats, "[tokens, experts]", strided_rows);
    v.input("ids", ids, id_types, "[tokens, top_k]");
    v.output("d_logits", d_logits, floats, "[tokens, experts]", strided_rows);
    v.flag("normalise", normalise);
    v.number("scale", scale);
  }
};

Status run(const SoftmaxForward& args, Runtime& runtime);
Status run(const SoftmaxBackward& args, Runtime& runtime);
Status run(const SigmoidForward& args, Runtime& runtime);
Status run(const SigmoidBackward& args, Runtime& runtime);

template <typename T>
void softmax_forward_reference(const SoftmaxForward& args);
template <typename T>
void softmax_backward_reference(const SoftmaxBackward& args);
template <typename T>
void sigmoid_forward_reference(const SigmoidForward& args);
template <typename T>
void sigmoid_backward_reference(const SigmoidBackward& args);

// Both routers share one structure; what only one has is unused by the other.
struct ForwardParams {
  const float* logits;
  const float* bias;  // may be null
  Ids given, ids;     // given.data may be null
  float* weights;
  int64_t logits_stride, experts, top_k, groups, groups_kept;
  float scale;
  bool normalise;
};

struct BackwardParams {
  const float* d_weights;
  const float* logits;
  Ids ids;
  float* d_logits;
  int64_t logits_stride, d_logits_stride, experts, top_k;
  float scale;
  bool normalise;
};

// Floats of scratch per thread: scores, choices and scores of groups, each in whole vectors.
inline constexpr int64_t scratch_parts = 3;

// Each returns the first row with a logit that is not finite, or -1. Such a row stops the kernel.
struct Kernels {
  int64_t (*softmax_forward)(const ForwardParams& params, float* scratch, int64_t row_begin, int64_t row_end);
  int64_t (*softmax_backward)(const BackwardParams& params, float* scratch, int64_t row_begin, int64_t row_end);
  int64_t (*sigmoid_forward)(const ForwardParams& params, float* scratch, int64_t row_begin, int64_t row_end);
  int64_t (*sigmoid_backward)(const BackwardParams& params, float* scratch, int64_t row_begin, int64_t row_end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::moe_router
