#include "ops/swiglu/swiglu.h"

#include "include/check.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(swiglu)

namespace trilithon::swiglu {
namespace {

// One exp and two divisions cost about as much as moving this many bytes.
constexpr int64_t element_cost = 40;

// Columns [begin, begin + width) of every row.
TensorView columns(const TensorView& matrix, int64_t begin, int64_t width) {
  TensorView part = matrix;
  part.data = matrix.as<char>() + begin * static_cast<int64_t>(dtype_size(matrix.dtype));
  part.shape[1] = width;
  return part;
}

void check_halves(Check& check, const char* argument, const TensorView& gate_up, int64_t width) {
  check.that(gate_up.shape[1] == 2 * width, argument, std::to_string(2 * width) + " columns, twice as many as y has",
             std::to_string(gate_up.shape[1]));
}

Status compute(const Forward& a, const char* name, Runtime& runtime) {
  if (runtime.use_reference(a.y.dtype)) {
    with_floating(a.y.dtype, [&]<typename T>() { forward_reference<T>(a); });
    return {};
  }
  const int64_t width = a.y.shape[1];
  const ForwardParams params{a.gate.as<float>(), a.up.as<float>(), a.y.as<float>(), a.gate.stride[0], a.up.stride[0], a.y.stride[0], width};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).forward;
  return runtime.parallel(name, a.y.shape[0], Runtime::grain(width * element_cost),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

Status compute(const Backward& a, const char* name, Runtime& runtime) {
  if (runtime.use_reference(a.d_y.dtype)) {
    with_floating(a.d_y.dtype, [&]<typename T>() { backward_reference<T>(a); });
    return {};
  }
  const int64_t width = a.d_y.shape[1];
  const BackwardParams params{a.d_y.as<float>(),
                              a.gate.as<float>(),
                              a.up.as<float>(),
                              a.d_gate.as<float>(),
                              a.d_up.as<float>(),
                              a.d_y.stride[0],
                              a.gate.stride[0],
                              a.up.stride[0],
                              a.d_gate.stride[0],
                              a.d_up.stride[0],
                              width};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).backward;
  return runtime.parallel(name, a.d_y.shape[0], Runtime::grain(width * element_cost),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

}  // namespace

Status run(const Forward& a, Runtime& runtime) {
  Check check(Forward::name);
  Dim tokens("tokens"), width("width");
  check.shape("gate", a.gate, {&tokens, &width});
  check.shape("up", a.up, {&tokens, &width});
  check.shape("y", a.y, {&tokens, &width});
  if (!check.ok()) return check.status();
  return compute(a, Forward::name, runtime);
}

Status run(const Backward& a, Runtime& runtime) {
  Check check(Backward::name);
  Dim tokens("tokens"), width("width");
  check.shape("d_y", a.d_y, {&tokens, &width});
  check.shape("gate", a.gate, {&tokens, &width});
  check.shape("up", a.up, {&tokens, &width});
  check.shape("d_gate", a.d_gate, {&tokens, &width});
  check.shape("d_up", a.d_up, {&tokens, &width});
  if (!check.ok()) return check.status();
  return compute(a, Backward::name, runtime);
}

Status run(const FusedForward& a, Runtime& runtime) {
  Check check(FusedForward::name);
  Dim tokens("tokens"), width("width"), both("2 * width");
  check.shape("y", a.y, {&tokens, &width});
  check.shape("gate_up", a.gate_up, {&tokens, &both});
  if (check.ok()) check_halves(check, "gate_up", a.gate_up, width);
  if (!check.ok()) return check.status();
  return compute(Forward{columns(a.gate_up, 0, width), columns(a.gate_up, width, width), a.y}, FusedForward::name, runtime);
}

Status run(const FusedBackward& a, Runtime& runtime) {
  Check check(FusedBackward::name);
  Dim tokens("tokens"), width("width"), both("2 * width");
  check.shape("d_y", a.d_y, {&tokens, &width});
  check.shape("gate_up", a.gate_up, {&tokens, &both});
  check.shape("d_gate_up", a.d_gate_up, {&tokens, &both});
  if (check.ok()) check_halves(check, "gate_up", a.gate_up, width);
  if (!check.ok()) return check.status();
  return compute(Backward{a.d_y, columns(a.gate_up, 0, width), columns(a.gate_up, width, width), columns(a.d_gate_up, 0, width),
                          columns(a.d_gate_up, width, width)},
                 FusedBackward::name, runtime);
}

}  // namespace trilithon::swiglu

namespace trilithon {

void register_swiglu(OpRegistry& registry) {
  add_entry<swiglu::Forward>(registry);
  add_entry<swiglu::Backward>(registry);
  add_entry<swiglu::FusedForward>(registry);
  add_entry<swiglu::FusedBackward>(registry);
}

}  // namespace trilithon
