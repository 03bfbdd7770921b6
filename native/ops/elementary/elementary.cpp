#include "ops/elementary/elementary.h"

#include "include/check.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(elementary)

namespace trilithon::elementary {

Status run_function(Function function, const char* name, const TensorView& x, const TensorView& y, Runtime& runtime) {
  Check check(name);
  Dim elements("elements");
  check.shape("x", x, {&elements});
  check.shape("y", y, {&elements});
  if (!check.ok()) return check.status();

  if (runtime.use_reference(x.dtype)) {
    with_floating(x.dtype, [&]<typename T>() { map_reference<T>(function, x, y); });
    return {};
  }
  const auto kernel = kernels(runtime.profile(), runtime.isa()).map;
  // A polynomial costs about as much as moving a hundred bytes.
  return runtime.parallel(name, elements, Runtime::grain(100),
                          [&](int64_t begin, int64_t end, int) { kernel(function, x.as<float>(), y.as<float>(), begin, end); });
}

}  // namespace trilithon::elementary

namespace trilithon {

void register_elementary(OpRegistry& registry) {
  using namespace elementary;
  add_entry<Map<Function::exp>>(registry);
  add_entry<Map<Function::log>>(registry);
  add_entry<Map<Function::sin>>(registry);
  add_entry<Map<Function::cos>>(registry);
  add_entry<Map<Function::rsqrt>>(registry);
  add_entry<Map<Function::sigmoid>>(registry);
  add_entry<Map<Function::silu>>(registry);
}

}  // namespace trilithon
