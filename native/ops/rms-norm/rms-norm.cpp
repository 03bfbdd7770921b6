#include "ops/rms-norm/rms-norm.h"

#include "include/check.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(rms_norm)

namespace trilithon::rms_norm {

// Columns that one thread sums at a time for d_weight: long enough to read each row in a stream.
constexpr int64_t weight_columns = 1024;

Status run(const Forward& a, Runtime& runtime) {
  Check check(Forward::name);
  Dim tokens("tokens"), width("width");
  check.shape("x", a.x, {&tokens, &width});
  check.shape("weight", a.weight, {&width});
  check.shape("y", a.y, {&tokens, &width});
  check.shape("rstd", a.rstd, {&tokens});
  check.that(a.eps >= 0, "eps", "a number >= 0", number_text(a.eps));
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.x.dtype)) {
    with_floating(a.x.dtype, [&]<typename T>() { forward_reference<T>(a); });
    return {};
  }
  const ForwardParams params{a.x.as<float>(), a.weight.as<float>(), a.y.as<float>(), a.rstd.as<float>(),
                             a.x.stride[0],   a.y.stride[0],        width,           static_cast<float>(a.eps)};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).forward;
  return runtime.parallel(Forward::name, tokens, Runtime::grain(width * 8),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

Status run(const Backward& a, Runtime& runtime) {
  Check check(Backward::name);
  Dim tokens("tokens"), width("width");
  check.shape("d_y", a.d_y, {&tokens, &width});
  check.shape("x", a.x, {&tokens, &width});
  check.shape("weight", a.weight, {&width});
  check.shape("rstd", a.rstd, {&tokens});
  check.shape("d_x", a.d_x, {&tokens, &width});
  check.shape("d_weight", a.d_weight, {&width});
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.x.dtype)) {
    with_floating(a.x.dtype, [&]<typename T>() { backward_reference<T>(a); });
    return {};
  }
  const BackwardParams params{a.d_y.as<float>(),
                              a.x.as<float>(),
                              a.weight.as<float>(),
                              a.rstd.as<float>(),
                              a.d_x.as<float>(),
                              a.d_weight.as<float>(),
                              a.d_y.stride[0],
                              a.x.stride[0],
                              a.d_x.stride[0],
                              tokens,
                              width,
                              a.accumulate};
  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  Status status = runtime.parallel(Backward::name, tokens, Runtime::grain(width * 12),
                                   [&](int64_t begin, int64_t end, int) { table.backward_x(params, begin, end); });
  if (!status.ok()) return status;
  return runtime.parallel(Backward::name, width, weight_columns,
                          [&](int64_t begin, int64_t end, int) { table.backward_weight(params, begin, end); });
}

}  // namespace trilithon::rms_norm

namespace trilithon {

void register_rms_norm(OpRegistry& registry) {
  add_entry<rms_norm::Forward>(registry);
  add_entry<rms_norm::Backward>(registry);
}

}  // namespace trilithon
