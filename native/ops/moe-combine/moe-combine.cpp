#include "ops/moe-combine/moe-combine.h"

#include "include/check.h"
#include "ops/moe-permute/slot-rows.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(moe_combine)

namespace trilithon::moe_combine {

Status run(const Forward& a, Runtime& runtime) {
  Check check(Forward::name);
  Dim tokens("tokens"), top_k("top_k"), width("width"), rows("rows");
  check.shape("x", a.x, {&rows, &width});
  check.shape("slot_row", a.slot_row, {&tokens, &top_k});
  check.shape("weights", a.weights, {&tokens, &top_k});
  check.shape("y", a.y, {&tokens, &width});
  if (!check.ok()) return check.status();
  if (Status status = moe_permute::check_slot_rows(Forward::name, a.slot_row, rows, false, runtime); !status.ok()) return status;

  if (runtime.use_reference(a.x.dtype)) {
    with_floating(a.x.dtype, [&]<typename T>() { forward_reference<T>(a); });
    return {};
  }
  const ForwardParams params{
      a.x.as<float>(), a.slot_row.as<int32_t>(), a.weights.as<float>(), a.y.as<float>(), a.x.stride[0], a.y.stride[0], top_k, width,
      a.accumulate};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).forward;
  return runtime.parallel(Forward::name, tokens, Runtime::grain(width * 4 * (top_k + 2)),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

Status run(const Backward& a, Runtime& runtime) {
  Check check(Backward::name);
  Dim tokens("tokens"), top_k("top_k"), width("width");
  check.shape("d_y", a.d_y, {&tokens, &width});
  check.shape("slot_row", a.slot_row, {&tokens, &top_k});
  check.shape("weights", a.weights, {&tokens, &top_k});
  check.shape("d_weights", a.d_weights, {&tokens, &top_k});
  if (!check.ok()) return check.status();
  Dim rows("tokens * top_k", tokens * top_k);
  check.shape("x", a.x, {&rows, &width});
  check.shape("d_x", a.d_x, {&rows, &width});
  if (!check.ok()) return check.status();
  if (Status status = moe_permute::check_slot_rows(Backward::name, a.slot_row, rows, true, runtime); !status.ok()) return status;

  if (runtime.use_reference(a.x.dtype)) {
    with_floating(a.x.dtype, [&]<typename T>() { backward_reference<T>(a); });
    return {};
  }
  const BackwardParams params{a.d_y.as<float>(),
                              a.x.as<float>(),
                              a.slot_row.as<int32_t>(),
                              a.weights.as<float>(),
                              a.d_x.as<float>(),
                              a.d_weights.as<float>(),
                              a.d_y.stride[0],
                              a.x.stride[0],
                              a.d_x.stride[0],
                              top_k,
                              width};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).backward;
  return runtime.parallel(Backward::name, tokens, Runtime::grain(width * 8 * (top_k + 1)),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

}  // namespace trilithon::moe_combine

namespace trilithon {

void register_moe_combine(OpRegistry& registry) {
  add_entry<moe_combine::Forward>(registry);
  add_entry<moe_combine::Backward>(registry);
}

}  // namespace trilithon
