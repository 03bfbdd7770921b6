#include "ops/moe-router/moe-router.h"

#include <atomic>
#include <cmath>

#include "include/check.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(moe_router)

namespace trilithon::moe_router {
namespace {

// Finding one expert reads all of them, twice.
int64_t row_cost(int64_t experts, int64_t top_k) { return experts * (8 * top_k + 40); }

// A missing row must not look like a row of expert ids.
bool fits(DType type, int64_t experts, int64_t top_k) {
  if (type == DType::i32) return true;
  const int64_t codes = type == DType::u8 ? 256 : 65536;
  return experts < codes || (experts == codes && top_k >= 2);
}

void check_type(Check& check, const char* argument, const TensorView& ids, int64_t experts, int64_t top_k) {
  if (!ids.present()) return;
  check.that(fits(ids.dtype, experts, top_k), argument,
             "a type that has a code to spare for " + std::to_string(experts) + " experts, " + std::to_string(top_k) + " per token",
             dtype_name(ids.dtype));
}

void check_top_k(Check& check, int64_t experts, int64_t top_k) {
  const int64_t most = std::min(experts, most_experts_per_token);
  check.that(top_k <= most, "ids", "at most " + std::to_string(most) + " experts per token", std::to_string(top_k));
}

// Every row has distinct ids of experts, or is missing where that is allowed.
Status check_ids(const char* name, const char* argument, const TensorView& view, int64_t experts, bool missing_allowed) {
  if (!view.present()) return {};
  const Ids ids = ids_of(view);
  for (int64_t t = 0; t < view.shape[0]; ++t) {
    if (is_missing(ids, t)) {
      if (missing_allowed) continue;
      return invalid_argument(name, argument, "experts for every token", "a missing row (all bits set) for token " + std::to_string(t));
    }
    for (int64_t slot = 0; slot < ids.top_k; ++slot) {
      const int64_t id = get_id(ids, t, slot);
      bool fine = id >= 0 && id < experts;
      for (int64_t before = 0; before < slot; ++before) fine = fine && get_id(ids, t, before) != id;
      if (fine) continue;
      return invalid_argument(name, argument, "distinct experts from 0 to " + std::to_string(experts - 1) + " for each token",
                              std::to_string(id) + " in slot " + std::to_string(slot) + " of token " + std::to_string(t));
    }
  }
  return {};
}

template <typename T>
int64_t first_row_not_finite(const TensorView& matrix) {
  for (int64_t t = 0; t < matrix.shape[0]; ++t) {
    for (int64_t i = 0; i < matrix.shape[1]; ++i) {
      if (!std::isfinite(matrix.at<T>(t, i))) return t;
    }
  }
  return -1;
}

Status refuse_row(const char* name, int64_t row) {
  return invalid_argument(name, "logits", "finite numbers", "NaN or infinity for token " + std::to_string(row));
}

// Runs a kernel over all rows, and names the first row that it refuses.
template <typename Params>
Status over_rows(const char* name, int64_t (*kernel)(const Params&, float*, int64_t, int64_t), const Params& params, int64_t tokens,
                 Runtime& runtime) {
  const size_t bytes = static_cast<size_t>(scratch_parts * ((params.experts + 15) / 16 * 16)) * sizeof(float);
  // Asked for here, so that a failure is one of the call and not of a thread.
  for (int thread = 0; thread < runtime.threads(); ++thread) {
    void* data;
    if (Status status = runtime.scratch_for(name, thread, bytes, data); !status.ok()) return status;
  }
  std::atomic<int64_t> refused{tokens};
  Status status =
      runtime.parallel(name, tokens, Runtime::grain(row_cost(params.experts, params.top_k)), [&](int64_t begin, int64_t end, int thread) {
        float* scratch = static_cast<float*>(runtime.scratch(thread, bytes));
        const int64_t row = kernel(params, scratch, begin, end);
        int64_t before = refused.load();
        while (row >= 0 && row < before && !refused.compare_exchange_weak(before, row)) {
        }
      });
  if (!status.ok()) return status;
  return refused == tokens ? Status() : refuse_row(name, refused);
}

// What both routers check of their forward entry; binds `tokens`, `experts` and `top_k`.
template <typename Args>
Status check_forward(Check& check, const Args& a, Dim& experts, Dim& top_k) {
  Dim tokens("tokens");
  check.shape("logits", a.logits, {&tokens, &experts});
  check.shape("ids", a.ids, {&tokens, &top_k});
  check.shape("given", a.given, {&tokens, &top_k});
  check.shape("weights", a.weights, {&tokens, &top_k});
  if (check.ok()) check_top_k(check, experts, top_k);
  if (check.ok()) check_type(check, "ids", a.ids, experts, top_k);
  if (check.ok()) check_type(check, "given", a.given, experts, top_k);
  if (!check.ok()) return check.status();
  return check_ids(Args::name, "given", a.given, experts, a.select_missing);
}

template <typename Args>
Status check_backward(const Args& a) {
  Check check(Args::name);
  Dim tokens("tokens"), experts("experts"), top_k("top_k");
  check.shape("logits", a.logits, {&tokens, &experts});
  check.shape("ids", a.ids, {&tokens, &top_k});
  check.shape("d_weights", a.d_weights, {&tokens, &top_k});
  check.shape("d_logits", a.d_logits, {&tokens, &experts});
  if (check.ok()) check_top_k(check, experts, top_k);
  if (!check.ok()) return check.status();
  return check_ids(Args::name, "ids", a.ids, experts, false);
}

template <typename Args>
ForwardParams forward_params(const Args& a) {
  ForwardParams params{};
  params.logits = a.logits.template as<float>();
  params.given = ids_of(a.given);
  params.ids = ids_of(a.ids);
  params.weights = a.weights.template as<float>();
  params.logits_stride = a.logits.stride[0];
  params.experts = a.logits.shape[1];
  params.top_k = a.ids.shape[1];
  return params;
}

template <typename Args>
BackwardParams backward_params(const Args& a) {
  BackwardParams params{};
  params.d_weights = a.d_weights.template as<float>();
  params.logits = a.logits.template as<float>();
  params.ids = ids_of(a.ids);
  params.d_logits = a.d_logits.template as<float>();
  params.logits_stride = a.logits.stride[0];
  params.d_logits_stride = a.d_logits.stride[0];
  params.experts = a.logits.shape[1];
  params.top_k = a.ids.shape[1];
  return params;
}

// Runs the reference if it is its turn; `refused` is then the status of the call.
template <typename Args, typename Reference>
bool by_reference(const Args& a, Runtime& runtime, Status& status, Reference reference) {
  if (!runtime.use_reference(a.logits.dtype)) return false;
  with_floating(a.logits.dtype, [&]<typename T>() {
    const int64_t row = first_row_not_finite<T>(a.logits);
    if (row >= 0) {
      status = refuse_row(Args::name, row);
    } else {
      reference.template operator()<T>();
    }
  });
  return true;
}

}  // namespace

Status run(const SoftmaxForward& a, Runtime& runtime) {
  Check check(SoftmaxForward::name);
  Dim experts("experts"), top_k("top_k");
  Status status = check_forward(check, a, experts, top_k);
  if (!status.ok() || by_reference(a, runtime, status, [&]<typename T>() { softmax_forward_reference<T>(a); })) return status;
  ForwardParams params = forward_params(a);
  params.normalise = a.renormalise;
  return over_rows(SoftmaxForward::name, kernels(runtime.profile(), runtime.isa()).softmax_forward, params, a.logits.shape[0], runtime);
}

Status run(const SoftmaxBackward& a, Runtime& runtime) {
  Status status = check_backward(a);
  if (!status.ok() || by_reference(a, runtime, status, [&]<typename T>() { softmax_backward_reference<T>(a); })) return status;
  BackwardParams params = backward_params(a);
  params.normalise = a.renormalise;
  return over_rows(SoftmaxBackward::name, kernels(runtime.profile(), runtime.isa()).softmax_backward, params, a.logits.shape[0], runtime);
}

Status run(const SigmoidForward& a, Runtime& runtime) {
  Check check(SigmoidForward::name);
  Dim experts("experts"), top_k("top_k");
  check.shape("bias", a.bias, {&experts});
  Status status = check_forward(check, a, experts, top_k);
  if (!status.ok()) return status;
  check.that(a.groups >= 1 && experts % a.groups == 0, "groups", "a number that divides " + std::to_string(experts) + " experts",
             std::to_string(a.groups));
  if (!check.ok()) return check.status();
  const int64_t size = experts / a.groups;
  check.that(a.groups == 1 || size >= 2, "groups", "groups of at least two experts, whose two best are its score",
             std::to_string(a.groups) + " groups of " + std::to_string(size));
  check.that(a.groups_kept >= 1 && a.groups_kept <= a.groups, "groups_kept", "1 to " + std::to_string(a.groups),
             std::to_string(a.groups_kept));
  check.that(a.groups_kept * size >= top_k, "groups_kept", "groups that hold at least " + std::to_string(top_k) + " experts",
             std::to_string(a.groups_kept) + " groups of " + std::to_string(size));
  if (a.bias.present()) {
    const int64_t one_row[] = {1, experts};
    const TensorView row = contiguous_view(a.bias.data, a.bias.dtype, 2, one_row);
    with_floating(a.bias.dtype,
                  [&]<typename T>() { check.that(first_row_not_finite<T>(row) < 0, "bias", "finite numbers", "NaN or infinity"); });
  }
  if (!check.ok()) return check.status();

  if (by_reference(a, runtime, status, [&]<typename T>() { sigmoid_forward_reference<T>(a); })) return status;
  ForwardParams params = forward_params(a);
  params.bias = a.bias.as<float>();
  params.groups = a.groups;
  params.groups_kept = a.groups_kept;
  params.scale = static_cast<float>(a.scale);
  params.normalise = a.normalise;
  return over_rows(SigmoidForward::name, kernels(runtime.profile(), runtime.isa()).sigmoid_forward, params, a.logits.shape[0], runtime);
}

Status run(const SigmoidBackward& a, Runtime& runtime) {
  Status status = check_backward(a);
  if (!status.ok() || by_reference(a, runtime, status, [&]<typename T>() { sigmoid_backward_reference<T>(a); })) return status;
  BackwardParams params = backward_params(a);
  params.scale = static_cast<float>(a.scale);
  params.normalise = a.normalise;
  return over_rows(SigmoidBackward::name, kernels(runtime.profile(), runtime.isa()).sigmoid_backward, params, a.logits.shape[0], runtime);
}

}  // namespace trilithon::moe_router

namespace trilithon {

void register_moe_router(OpRegistry& registry) {
  add_entry<moe_router::SoftmaxForward>(registry);
  add_entry<moe_router::SoftmaxBackward>(registry);
  add_entry<moe_router::SigmoidForward>(registry);
  add_entry<moe_router::SigmoidBackward>(registry);
}

}  // namespace trilithon
