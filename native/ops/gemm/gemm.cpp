#include "ops/gemm/gemm.h"

#include "include/check.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(gemm)

namespace trilithon::gemm {
namespace {

// Columns that one thread sums at a time for d_bias.
constexpr int64_t sum_columns = 256;

Status multiply(const char* name, const Product& product, int64_t m, int64_t n, Runtime& runtime) {
  const ProductCut cut(m, n, product.k, product.b_form, runtime.threads());
  const auto kernel = kernels(runtime.profile(), runtime.isa()).product;
  for (int thread = 0; thread < runtime.threads(); ++thread) {
    void* scratch = nullptr;
    if (Status status = runtime.scratch_for(name, thread, product_scratch_bytes, scratch); !status.ok()) return status;
  }
  return runtime.parallel(name, cut.parts(), 1, [&](int64_t begin, int64_t, int thread) {
    kernel(product, cut.block(begin), static_cast<float*>(runtime.scratch(thread, product_scratch_bytes)));
  });
}

// Shapes of weight and packed, of which exactly one is there. Lanes of the panels run along `columns`.
void check_weight(Check& check, const TensorView& weight, const TensorView& packed, Dim& n, Dim& k, Dim& columns, Dim& depth) {
  check.shape("weight", weight, {&n, &k});
  check.that(weight.present() != packed.present(), "weight", "either weight or packed", weight.present() ? "both" : "neither");
  if (!check.ok() || !packed.present()) return;
  Dim panels("panels", divide_up(columns, 32)), lanes("lanes", 32);
  check.shape("packed", packed, {&panels, &depth, &lanes});
}

}  // namespace

Status run(const Forward& a, Runtime& runtime) {
  Check check(Forward::name);
  Dim tokens("tokens"), n("n"), k("k");
  check.shape("x", a.x, {&tokens, &k});
  check.shape("y", a.y, {&tokens, &n});
  check.shape("bias", a.bias, {&n});
  check_weight(check, a.weight, a.packed, n, k, n, k);
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.x.dtype)) {
    with_floating(a.x.dtype, [&]<typename T>() { forward_reference<T>(a); });
    return {};
  }
  const bool packed = a.packed.present();
  const Product product{a.x.as<float>(), packed ? a.packed.as<float>() : a.weight.as<float>(),
                        a.y.as<float>(), a.bias.as<float>(),
                        a.x.stride[0],   packed ? k.value : a.weight.stride[0],
                        a.y.stride[0],   k,
                        AForm::rows,     packed ? BForm::panels : BForm::transposed,
                        a.accumulate};
  return multiply(Forward::name, product, tokens, n, runtime);
}

Status run(const BackwardX& a, Runtime& runtime) {
  Check check(BackwardX::name);
  Dim tokens("tokens"), n("n"), k("k");
  check.shape("d_y", a.d_y, {&tokens, &n});
  check.shape("d_x", a.d_x, {&tokens, &k});
  check_weight(check, a.weight, a.packed, n, k, k, n);
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.d_y.dtype)) {
    with_floating(a.d_y.dtype, [&]<typename T>() { backward_x_reference<T>(a); });
    return {};
  }
  const bool packed = a.packed.present();
  const Product product{a.d_y.as<float>(), packed ? a.packed.as<float>() : a.weight.as<float>(),
                        a.d_x.as<float>(), nullptr,
                        a.d_y.stride[0],   packed ? n.value : a.weight.stride[0],
                        a.d_x.stride[0],   n,
                        AForm::rows,       packed ? BForm::panels : BForm::rows,
                        a.accumulate};
  return multiply(BackwardX::name, product, tokens, k, runtime);
}

Status run(const BackwardWeight& a, Runtime& runtime) {
  Check check(BackwardWeight::name);
  Dim tokens("tokens"), n("n"), k("k");
  check.shape("d_y", a.d_y, {&tokens, &n});
  check.shape("x", a.x, {&tokens, &k});
  check.shape("d_weight", a.d_weight, {&n, &k});
  check.shape("d_bias", a.d_bias, {&n});
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.d_y.dtype)) {
    with_floating(a.d_y.dtype, [&]<typename T>() { backward_weight_reference<T>(a); });
    return {};
  }
  const Product product{a.d_y.as<float>(),    a.x.as<float>(), a.d_weight.as<float>(), nullptr,     a.d_y.stride[0], a.x.stride[0],
                        a.d_weight.stride[0], tokens,          AForm::columns,         BForm::rows, a.accumulate};
  Status status = multiply(BackwardWeight::name, product, n, k, runtime);
  if (!status.ok() || !a.d_bias.present()) return status;
  const SumParams sums{a.d_y.as<float>(), a.d_bias.as<float>(), a.d_y.stride[0], tokens, a.accumulate};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).column_sums;
  return runtime.parallel(BackwardWeight::name, n, sum_columns, [&](int64_t begin, int64_t end, int) { kernel(sums, begin, end); });
}

Status run(const Pack& a, Runtime& runtime) {
  Check check(Pack::name);
  Dim n("n"), k("k");
  check.shape("weight", a.weight, {&n, &k});
  if (!check.ok()) return check.status();
  Dim panels("panels", divide_up(a.backward ? k : n, 32)), depth("depth", a.backward ? n : k), lanes("lanes", 32);
  check.shape("packed", a.packed, {&panels, &depth, &lanes});
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.weight.dtype)) {
    with_floating(a.weight.dtype, [&]<typename T>() { pack_reference<T>(a); });
    return {};
  }
  const PackParams params{a.weight.as<float>(), a.packed.as<float>(), a.weight.stride[0], n, k, a.backward};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).pack;
  return runtime.parallel(Pack::name, panels, Runtime::grain(depth * 32 * 8),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

}  // namespace trilithon::gemm

namespace trilithon {

void register_gemm(OpRegistry& registry) {
  add_entry<gemm::Forward>(registry);
  add_entry<gemm::BackwardX>(registry);
  add_entry<gemm::BackwardWeight>(registry);
  add_entry<gemm::Pack>(registry);
}

}  // namespace trilithon
