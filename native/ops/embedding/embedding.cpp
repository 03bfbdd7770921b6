#include "ops/embedding/embedding.h"

#include "include/check.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(embedding)

namespace trilithon::embedding {
namespace {

// Columns that one thread sums at a time: each token's part is a few cache lines in a row.
constexpr int64_t backward_columns = 256;

Status check_ids(const char* name, const TensorView& ids, int64_t vocabulary) {
  for (int64_t t = 0; t < ids.shape[0]; ++t) {
    const int32_t id = ids.at<int32_t>(t);
    if (id >= 0 && id < vocabulary) continue;
    return invalid_argument(name, "ids", "ids from 0 to " + std::to_string(vocabulary - 1),
                            std::to_string(id) + " at " + std::to_string(t));
  }
  return {};
}

}  // namespace

Status run(const Forward& a, Runtime& runtime) {
  Check check(Forward::name);
  Dim tokens("tokens"), vocabulary("vocabulary"), width("width");
  check.shape("ids", a.ids, {&tokens});
  check.shape("table", a.table, {&vocabulary, &width});
  check.shape("y", a.y, {&tokens, &width});
  if (!check.ok()) return check.status();
  if (Status status = check_ids(Forward::name, a.ids, vocabulary); !status.ok()) return status;

  if (runtime.use_reference(a.y.dtype)) {
    with_floating(a.y.dtype, [&]<typename T>() { forward_reference<T>(a); });
    return {};
  }
  const ForwardParams params{a.ids.as<int32_t>(), a.table.as<float>(), a.y.as<float>(), a.table.stride[0], a.y.stride[0], width};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).forward;
  return runtime.parallel(Forward::name, tokens, Runtime::grain(width * 8),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

Status run(const Backward& a, Runtime& runtime) {
  Check check(Backward::name);
  Dim tokens("tokens"), vocabulary("vocabulary"), width("width");
  check.shape("d_y", a.d_y, {&tokens, &width});
  check.shape("ids", a.ids, {&tokens});
  check.shape("d_table", a.d_table, {&vocabulary, &width});
  if (!check.ok()) return check.status();
  if (Status status = check_ids(Backward::name, a.ids, vocabulary); !status.ok()) return status;

  if (runtime.use_reference(a.d_y.dtype)) {
    with_floating(a.d_y.dtype, [&]<typename T>() { backward_reference<T>(a); });
    return {};
  }
  const BackwardParams params{a.d_y.as<float>(), a.ids.as<int32_t>(), a.d_table.as<float>(), a.d_y.stride[0], a.d_table.stride[0], tokens};
  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  if (!a.accumulate) {
    Status status = runtime.parallel(Backward::name, vocabulary, Runtime::grain(width * 4),
                                     [&](int64_t begin, int64_t end, int) { table.clear(params, begin, end, width); });
    if (!status.ok()) return status;
  }
  return runtime.parallel(Backward::name, width, backward_columns,
                          [&](int64_t begin, int64_t end, int) { table.backward(params, begin, end); });
}

}  // namespace trilithon::embedding

namespace trilithon {

void register_embedding(OpRegistry& registry) {
  add_entry<embedding::Forward>(registry);
  add_entry<embedding::Backward>(registry);
}

}  // namespace trilithon
