#include "ops/layer-norm/layer-norm.h"

#include "include/check.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(layer_norm)

namespace trilithon::layer_norm {

// Columns that one thread sums at a time for d_weight and d_bias: long enough to read each row in a stream.
constexpr int64_t weight_columns = 1024;

Status run(const Forward& a, Runtime& runtime) {
  Check check(Forward::name);
  Dim tokens("tokens"), width("width");
  check.shape("x", a.x, {&tokens, &width});
  check.shape("weight", a.weight, {&width});
  check.shape("bias", a.bias, {&width});
  check.shape("y", a.y, {&tokens, &width});
  check.shape("mean", a.mean, {&tokens});
  check.shape("rstd", a.rstd, {&tokens});
  check.that(a.eps >= 0, "eps", "a number >= 0", number_text(a.eps));
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.x.dtype)) {
    with_floating(a.x.dtype, [&]<typename T>() { forward_reference<T>(a); });
    return {};
  }
  const ForwardParams params{a.x.as<float>(),    a.weight.as<float>(), a.bias.as<float>(), a.y.as<float>(), a.mean.as<float>(),
                             a.rstd.as<float>(), a.x.stride[0],        a.y.stride[0],      width,           static_cast<float>(a.eps)};
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
  check.shape("mean", a.mean, {&tokens});
  check.shape("rstd", a.rstd, {&tokens});
  check.shape("d_x", a.d_x, {&tokens, &width});
  check.shape("d_weight", a.d_weight, {&width});
  check.shape("d_bias", a.d_bias, {&width});
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.x.dtype)) {
    with_floating(a.x.dtype, [&]<typename T>() { backward_reference<T>(a); });
    return {};
  }
  BackwardParams params{};
  params.d_y = a.d_y.as<float>();
  params.x = a.x.as<float>();
  params.weight = a.weight.as<float>();
  params.mean = a.mean.as<float>();
  params.rstd = a.rstd.as<float>();
  params.d_x = a.d_x.as<float>();
  params.d_weight = a.d_weight.as<float>();
  params.d_bias = a.d_bias.as<float>();
  params.d_y_stride = a.d_y.stride[0];
  params.x_stride = a.x.stride[0];
  params.d_x_stride = a.d_x.stride[0];
  params.tokens = tokens;
  params.width = width;
  params.accumulate = a.accumulate;
  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  Status status = runtime.parallel(Backward::name, tokens, Runtime::grain(width * 12),
                                   [&](int64_t begin, int64_t end, int) { table.backward_x(params, begin, end); });
  if (!status.ok()) return status;
  return runtime.parallel(Backward::name, width, weight_columns,
                          [&](int64_t begin, int64_t end, int) { table.backward_weight(params, begin, end); });
}

}  // namespace trilithon::layer_norm

namespace trilithon {

void register_layer_norm(OpRegistry& registry) {
  add_entry<layer_norm::Forward>(registry);
  add_entry<layer_norm::Backward>(registry);
}

}  // namespace trilithon
