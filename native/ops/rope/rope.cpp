#include "ops/rope/rope.h"

#include "include/check.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(rope)

namespace trilithon::rope {

Status run(const Tables& a, Runtime& runtime) {
  Check check(Tables::name);
  Dim tokens("tokens"), half("half");
  check.shape("positions", a.positions, {&tokens});
  check.shape("inverse_frequencies", a.inverse_frequencies, {&half});
  check.shape("cosines", a.cosines, {&tokens, &half});
  check.shape("sines", a.sines, {&tokens, &half});
  if (!check.ok()) return check.status();
  for (int64_t t = 0; t < tokens; ++t) {
    const int32_t position = a.positions.at<int32_t>(t);
    if (position >= 0 && position <= largest_position) continue;
    return invalid_argument(Tables::name, "positions", "positions from 0 to " + std::to_string(largest_position),
                            std::to_string(position) + " at " + std::to_string(t));
  }

  if (runtime.use_reference(a.cosines.dtype)) {
    with_floating(a.cosines.dtype, [&]<typename T>() { tables_reference<T>(a); });
    return {};
  }
  const TablesParams params{a.positions.as<int32_t>(),  a.inverse_frequencies.as<float>(), a.cosines.as<float>(), a.sines.as<float>(), half,
                            static_cast<float>(a.scale)};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).tables;
  return runtime.parallel(Tables::name, tokens, Runtime::grain(half * 100),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

namespace {

Status turn(const char* name, const char* x_name, const TensorView& x, const TensorView& cosines, const TensorView& sines,
            const char* y_name, const TensorView& y, bool interleaved, int direction, Runtime& runtime) {
  Check check(name);
  Dim tokens("tokens"), heads("heads"), width("width"), half("half");
  check.shape(x_name, x, {&tokens, &heads, &width});
  check.shape("cosines", cosines, {&tokens, &half});
  check.shape("sines", sines, {&tokens, &half});
  check.shape(y_name, y, {&tokens, &heads, &width});
  check.that(2 * half <= width, "cosines", "at most " + std::to_string(width / 2) + " columns, half the width of a head",
             std::to_string(half));
  if (!check.ok()) return check.status();

  if (runtime.use_reference(x.dtype)) {
    with_floating(x.dtype, [&]<typename T>() { turn_reference<T>(x, cosines, sines, y, interleaved, direction); });
    return {};
  }
  const TurnParams params{x.as<float>(), cosines.as<float>(), sines.as<float>(), y.as<float>(), heads,       width,        half,
                          x.stride[0],   x.stride[1],         y.stride[0],       y.stride[1],   interleaved, direction < 0};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).turn;
  return runtime.parallel(name, tokens, Runtime::grain(heads * width * 8),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

}  // namespace

Status run(const Forward& a, Runtime& runtime) {
  return turn(Forward::name, "x", a.x, a.cosines, a.sines, "y", a.y, a.interleaved, 1, runtime);
}

Status run(const Backward& a, Runtime& runtime) {
  return turn(Backward::name, "d_y", a.d_y, a.cosines, a.sines, "d_x", a.d_x, a.interleaved, -1, runtime);
}

}  // namespace trilithon::rope

namespace trilithon {

void register_rope(OpRegistry& registry) {
  add_entry<rope::Tables>(registry);
  add_entry<rope::Forward>(registry);
  add_entry<rope::Backward>(registry);
}

}  // namespace trilithon
