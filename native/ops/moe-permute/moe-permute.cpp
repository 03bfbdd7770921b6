#include "ops/moe-permute/moe-permute.h"

#include <algorithm>
#include <limits>

#include "include/check.h"
#include "ops/moe-permute/slot-rows.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(moe_permute)

namespace trilithon::moe_permute {
namespace {

using moe_router::get_id;
using moe_router::Ids;

Status check_experts(const Ids& ids, int64_t tokens, int64_t experts) {
  for (int64_t t = 0; t < tokens; ++t) {
    if (moe_router::is_missing(ids, t))
      return invalid_argument(Plan::name, "ids", "experts for every token", "a missing row (all bits set) for token " + std::to_string(t));
    for (int64_t slot = 0; slot < ids.top_k; ++slot) {
      const int64_t id = get_id(ids, t, slot);
      if (id >= 0 && id < experts) continue;
      return invalid_argument(Plan::name, "ids", "experts from 0 to " + std::to_string(experts - 1),
                              std::to_string(id) + " in slot " + std::to_string(slot) + " of token " + std::to_string(t));
    }
  }
  return {};
}

// Counting sort: two passes over the ids, which are few beside the rows that they move.
void sort_by_expert(const Ids& ids, int64_t tokens, int64_t experts, int32_t* slot_row, int32_t* offsets) {
  std::fill(offsets, offsets + experts + 1, 0);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t slot = 0; slot < ids.top_k; ++slot) ++offsets[get_id(ids, t, slot) + 1];
  }
  for (int64_t e = 0; e < experts; ++e) offsets[e + 1] += offsets[e];
  // offsets[e] runs through expert e's rows here and ends at the first row of the next one.
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t slot = 0; slot < ids.top_k; ++slot) slot_row[t * ids.top_k + slot] = offsets[get_id(ids, t, slot)]++;
  }
  for (int64_t e = experts; e > 0; --e) offsets[e] = offsets[e - 1];
  offsets[0] = 0;
}

}  // namespace

Status run(const Plan& a, Runtime& runtime) {
  Check check(Plan::name);
  Dim tokens("tokens"), top_k("top_k"), bounds("experts + 1");
  check.shape("ids", a.ids, {&tokens, &top_k});
  check.shape("slot_row", a.slot_row, {&tokens, &top_k});
  check.shape("offsets", a.offsets, {&bounds});
  check.that(top_k >= 1, "ids", "at least one expert per token", shape_text(a.ids));
  check.that(bounds >= 2, "offsets", "at least two elements: one expert", std::to_string(bounds));
  check.that(a.ids.elements() <= std::numeric_limits<int32_t>::max(), "ids", "at most 2^31 - 1 rows", shape_text(a.ids));
  if (!check.ok()) return check.status();
  const Ids ids = moe_router::ids_of(a.ids);
  if (Status status = check_experts(ids, tokens, bounds - 1); !status.ok()) return status;
  if (runtime.use_reference(DType::f32)) {
    plan_reference(a);
  } else {
    sort_by_expert(ids, tokens, bounds - 1, a.slot_row.as<int32_t>(), a.offsets.as<int32_t>());
  }
  return {};
}

Status run(const Forward& a, Runtime& runtime) {
  Check check(Forward::name);
  Dim tokens("tokens"), top_k("top_k"), width("width");
  check.shape("x", a.x, {&tokens, &width});
  check.shape("slot_row", a.slot_row, {&tokens, &top_k});
  if (!check.ok()) return check.status();
  Dim rows("tokens * top_k", tokens * top_k);
  check.shape("y", a.y, {&rows, &width});
  if (!check.ok()) return check.status();
  if (Status status = check_slot_rows(Forward::name, a.slot_row, rows, true, runtime); !status.ok()) return status;

  if (runtime.use_reference(a.x.dtype)) {
    with_floating(a.x.dtype, [&]<typename T>() { forward_reference<T>(a); });
    return {};
  }
  const ForwardParams params{a.x.as<float>(), a.slot_row.as<int32_t>(), a.y.as<float>(), a.x.stride[0], a.y.stride[0], top_k, width};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).forward;
  return runtime.parallel(Forward::name, tokens, Runtime::grain(width * 4 * (top_k + 1)),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

Status run(const Backward& a, Runtime& runtime) {
  Check check(Backward::name);
  Dim tokens("tokens"), top_k("top_k"), width("width"), rows("rows");
  check.shape("d_y", a.d_y, {&rows, &width});
  check.shape("slot_row", a.slot_row, {&tokens, &top_k});
  check.shape("d_x", a.d_x, {&tokens, &width});
  if (!check.ok()) return check.status();
  if (Status status = check_slot_rows(Backward::name, a.slot_row, rows, false, runtime); !status.ok()) return status;

  if (runtime.use_reference(a.d_y.dtype)) {
    with_floating(a.d_y.dtype, [&]<typename T>() { backward_reference<T>(a); });
    return {};
  }
  const BackwardParams params{
      a.d_y.as<float>(), a.slot_row.as<int32_t>(), a.d_x.as<float>(), a.d_y.stride[0], a.d_x.stride[0], top_k, width, a.accumulate};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).backward;
  return runtime.parallel(Backward::name, tokens, Runtime::grain(width * 4 * (top_k + 2)),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

}  // namespace trilithon::moe_permute

namespace trilithon {

void register_moe_permute(OpRegistry& registry) {
  add_entry<moe_permute::Plan>(registry);
  add_entry<moe_permute::Forward>(registry);
  add_entry<moe_permute::Backward>(registry);
}

}  // namespace trilithon
