#include "ops/grouped-gemm/grouped-gemm.h"

#include "include/check.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(grouped_gemm)

namespace trilithon::grouped_gemm {
namespace {

// The product of one expert: what all have in common, and how far the operands lie apart.
struct Experts {
  Product product;  // of an expert whose operands start at 0
  const int32_t* starts;
  int64_t count;
  int64_t b_step, c_step;  // elements from expert to expert, where an operand is a weight; else 0
  bool sums_over_rows;     // d_weight: the rows are what is summed
  int64_t m, n;            // of C; m only where the rows are summed

  int64_t rows(int64_t expert) const { return starts[expert + 1] - starts[expert]; }

  Product of(int64_t expert) const {
    Product one = product;
    const int64_t row = starts[expert];
    one.a += row * one.a_stride;
    if (sums_over_rows) {
      one.b += row * one.b_stride;
      one.c += expert * c_step;
      one.k = rows(expert);
    } else {
      one.b += expert * b_step;
      one.c += row * one.c_stride;
    }
    return one;
  }

  ProductCut cut(int64_t expert, int threads) const {
    return ProductCut(sums_over_rows ? m : rows(expert), n, sums_over_rows ? rows(expert) : product.k, product.b_form, threads);
  }
};

struct Part {
  int64_t expert;
  Block block;
};

Status multiply(const char* name, const Experts& experts, Runtime& runtime) {
  int64_t busy = 0;
  for (int64_t e = 0; e < experts.count; ++e) busy += experts.rows(e) > 0 ? 1 : 0;
  // With many experts the experts themselves keep the threads busy.
  const int threads = busy >= 8 * runtime.threads() ? 1 : runtime.threads();
  const auto is_idle = [&experts](int64_t e) { return experts.rows(e) == 0 && !experts.sums_over_rows; };
  int64_t count = 0;
  for (int64_t e = 0; e < experts.count; ++e) count += is_idle(e) ? 0 : experts.cut(e, threads).parts();
  if (count == 0) return {};
  void* memory = nullptr;
  if (Status status = runtime.scratch_for(name, -1, sizeof(Part) * static_cast<size_t>(count), memory); !status.ok()) return status;
  Part* const parts = static_cast<Part*>(memory);
  Part* next = parts;
  for (int64_t e = 0; e < experts.count; ++e) {
    if (is_idle(e)) continue;
    const ProductCut cut = experts.cut(e, threads);
    for (int64_t i = 0; i < cut.parts(); ++i) *next++ = {e, cut.block(i)};
  }
  for (int thread = 0; thread < runtime.threads(); ++thread) {
    void* scratch = nullptr;
    if (Status status = runtime.scratch_for(name, thread, product_scratch_bytes, scratch); !status.ok()) return status;
  }
  const auto kernel = kernels(runtime.profile(), runtime.isa()).product;
  return runtime.parallel(name, count, 1, [&](int64_t begin, int64_t, int thread) {
    const Part& part = parts[begin];
    kernel(experts.of(part.expert), part.block, static_cast<float*>(runtime.scratch(thread, product_scratch_bytes)));
  });
}

// Sees that the starts share all rows out to the experts.
void check_starts(Check& check, const TensorView& expert_starts, Dim& experts, int64_t rows) {
  Dim entries("experts + 1");
  if (check.ok() && experts.value >= 0) entries.value = experts + 1;
  check.shape("expert_starts", expert_starts, {&entries});
  if (!check.ok()) return;
  check.that(entries >= 2, "expert_starts", "at least one expert", "none");
  const std::string expected = "numbers that begin with 0, never fall and end with the " + std::to_string(rows) + " rows";
  const int32_t* starts = expert_starts.as<int32_t>();
  check.that(starts[0] == 0, "expert_starts", expected, "expert_starts[0] = " + std::to_string(starts[0]));
  for (int64_t e = 1; check.ok() && e < entries; ++e) {
    check.that(starts[e] >= starts[e - 1] && starts[e] <= rows, "expert_starts", expected,
               "expert_starts[" + std::to_string(e) + "] = " + std::to_string(starts[e]) + " after " + std::to_string(starts[e - 1]));
  }
  check.that(starts[entries - 1] == rows, "expert_starts", expected, "a last number of " + std::to_string(starts[entries - 1]));
  experts.value = entries - 1;
}

// Shapes of weight and packed, of which exactly one is there. Lanes of the panels run along `columns`.
void check_weight(Check& check, const TensorView& weight, const TensorView& packed, Dim& experts, Dim& n, Dim& k, Dim& columns,
                  Dim& depth) {
  check.shape("weight", weight, {&experts, &n, &k});
  check.that(weight.present() != packed.present(), "weight", "either weight or packed", weight.present() ? "both" : "neither");
  if (!check.ok() || !packed.present()) return;
  Dim panels("panels", divide_up(columns, 32)), lanes("lanes", 32);
  check.shape("packed", packed, {&experts, &panels, &depth, &lanes});
}

}  // namespace

Status run(const Forward& a, Runtime& runtime) {
  Check check(Forward::name);
  Dim rows("rows"), experts("experts"), n("n"), k("k");
  check.shape("x", a.x, {&rows, &k});
  check.shape("y", a.y, {&rows, &n});
  check_weight(check, a.weight, a.packed, experts, n, k, n, k);
  check_starts(check, a.expert_starts, experts, rows);
  if (!check.ok()) return check.status();
  if (rows == 0) return {};

  if (runtime.use_reference(a.x.dtype)) {
    with_floating(a.x.dtype, [&]<typename T>() { forward_reference<T>(a); });
    return {};
  }
  const TensorView& b = a.packed.present() ? a.packed : a.weight;
  const Product product{a.x.as<float>(), b.as<float>(),
                        a.y.as<float>(), nullptr,
                        a.x.stride[0],   k,
                        a.y.stride[0],   k,
                        AForm::rows,     a.packed.present() ? BForm::panels : BForm::transposed,
                        a.accumulate};
  return multiply(Forward::name, {product, a.expert_starts.as<int32_t>(), experts, b.row_elements(), 0, false, 0, n}, runtime);
}

Status run(const BackwardX& a, Runtime& runtime) {
  Check check(BackwardX::name);
  Dim rows("rows"), experts("experts"), n("n"), k("k");
  check.shape("d_y", a.d_y, {&rows, &n});
  check.shape("d_x", a.d_x, {&rows, &k});
  check_weight(check, a.weight, a.packed, experts, n, k, k, n);
  check_starts(check, a.expert_starts, experts, rows);
  if (!check.ok()) return check.status();
  if (rows == 0) return {};

  if (runtime.use_reference(a.d_y.dtype)) {
    with_floating(a.d_y.dtype, [&]<typename T>() { backward_x_reference<T>(a); });
    return {};
  }
  const bool packed = a.packed.present();
  const TensorView& b = packed ? a.packed : a.weight;
  const Product product{a.d_y.as<float>(), b.as<float>(),
                        a.d_x.as<float>(), nullptr,
                        a.d_y.stride[0],   packed ? n.value : k,
                        a.d_x.stride[0],   n,
                        AForm::rows,       packed ? BForm::panels : BForm::rows,
                        a.accumulate};
  return multiply(BackwardX::name, {product, a.expert_starts.as<int32_t>(), experts, b.row_elements(), 0, false, 0, k}, runtime);
}

Status run(const BackwardWeight& a, Runtime& runtime) {
  Check check(BackwardWeight::name);
  Dim rows("rows"), experts("experts"), n("n"), k("k");
  check.shape("d_y", a.d_y, {&rows, &n});
  check.shape("x", a.x, {&rows, &k});
  check.shape("d_weight", a.d_weight, {&experts, &n, &k});
  check_starts(check, a.expert_starts, experts, rows);
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.d_y.dtype)) {
    with_floating(a.d_y.dtype, [&]<typename T>() { backward_weight_reference<T>(a); });
    return {};
  }
  const Product product{
      a.d_y.as<float>(), a.x.as<float>(), a.d_weight.as<float>(), nullptr, a.d_y.stride[0], a.x.stride[0], k, 0, AForm::columns,
      BForm::rows,       a.accumulate};
  return multiply(BackwardWeight::name, {product, a.expert_starts.as<int32_t>(), experts, 0, n * k, true, n, k}, runtime);
}

Status run(const Pack& a, Runtime& runtime) {
  Check check(Pack::name);
  Dim experts("experts"), n("n"), k("k");
  check.shape("weight", a.weight, {&experts, &n, &k});
  if (!check.ok()) return check.status();
  Dim panels("panels", divide_up(a.backward ? k : n, 32)), depth("depth", a.backward ? n : k), lanes("lanes", 32);
  check.shape("packed", a.packed, {&experts, &panels, &depth, &lanes});
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.weight.dtype)) {
    with_floating(a.weight.dtype, [&]<typename T>() { pack_reference<T>(a); });
    return {};
  }
  const PackParams params{a.weight.as<float>(), a.packed.as<float>(), n, k, a.backward};
  const auto kernel = kernels(runtime.profile(), runtime.isa()).pack;
  return runtime.parallel(Pack::name, experts * panels, Runtime::grain(depth * 32 * 8),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

}  // namespace trilithon::grouped_gemm

namespace trilithon {

void register_grouped_gemm(OpRegistry& registry) {
  add_entry<grouped_gemm::Forward>(registry);
  add_entry<grouped_gemm::BackwardX>(registry);
  add_entry<grouped_gemm::BackwardWeight>(registry);
  add_entry<grouped_gemm::Pack>(registry);
}

}  // namespace trilithon
