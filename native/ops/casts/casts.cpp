#include "ops/casts/casts.h"

#include "include/check.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(casts)

namespace trilithon::casts {
namespace {

int64_t blocks_of(int64_t count, int64_t block) { return (count + block - 1) / block; }

// Shapes of codes, scales and the f32 matrix, which quantize and dequantize share.
void check_blocks(Check& check, const char* matrix_name, const TensorView& matrix, const TensorView& codes, const TensorView& scales,
                  int64_t block_rows) {
  Dim rows("rows"), columns("columns");
  check.shape(matrix_name, matrix, {&rows, &columns});
  check.shape("codes", codes, {&rows, &columns});
  check.that(block_rows == 1 || block_rows == block_columns, "block_rows", "1 or 128", std::to_string(block_rows));
  if (!check.ok()) return;
  Dim down("rows of blocks", blocks_of(rows, block_rows)), across("blocks across", blocks_of(columns, block_columns));
  check.shape("scales", scales, {&down, &across});
}

}  // namespace

Status run(const Narrow& a, Runtime& runtime) {
  Check check(Narrow::name);
  check.same_shape("y", a.y, "x", a.x);
  if (!check.ok()) return check.status();
  if (runtime.use_reference(DType::f32)) {
    narrow_reference(a);
    return {};
  }
  const auto kernel = kernels(runtime.profile(), runtime.isa()).narrow;
  return runtime.parallel(Narrow::name, a.x.elements(), Runtime::grain(8),
                          [&](int64_t begin, int64_t end, int) { kernel(a.y.dtype, a.x.as<float>(), a.y.data, begin, end); });
}

Status run(const Widen& a, Runtime& runtime) {
  Check check(Widen::name);
  check.same_shape("y", a.y, "x", a.x);
  if (!check.ok()) return check.status();
  if (runtime.use_reference(DType::f32)) {
    widen_reference(a);
    return {};
  }
  const auto kernel = kernels(runtime.profile(), runtime.isa()).widen;
  return runtime.parallel(Widen::name, a.x.elements(), Runtime::grain(8),
                          [&](int64_t begin, int64_t end, int) { kernel(a.x.dtype, a.x.data, a.y.as<float>(), begin, end); });
}

Status run(const Quantize& a, Runtime& runtime) {
  Check check(Quantize::name);
  check_blocks(check, "x", a.x, a.codes, a.scales, a.block_rows);
  check.that(static_cast<float>(a.amax_floor) >= 0x1p-100f, "amax_floor", "a number >= 2^-100, so that a block of zeros has a scale",
             number_text(a.amax_floor));
  if (!check.ok()) return check.status();
  if (runtime.use_reference(DType::f32)) {
    quantize_reference(a);
    return {};
  }
  BlockParams params{};
  params.x = a.x.as<float>();
  params.codes = a.codes.as<uint8_t>();
  params.scales = a.scales.as<float>();
  params.x_stride = a.x.stride[0];
  params.codes_stride = a.codes.stride[0];
  params.rows = a.x.shape[0];
  params.columns = a.x.shape[1];
  params.block_rows = a.block_rows;
  params.blocks_across = a.scales.shape[1];
  params.amax_floor = static_cast<float>(a.amax_floor);
  params.power_of_two = a.power_of_two;
  const auto kernel = kernels(runtime.profile(), runtime.isa()).quantize;
  return runtime.parallel(Quantize::name, a.scales.elements(), Runtime::grain(a.block_rows * block_columns * 8),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

Status run(const Dequantize& a, Runtime& runtime) {
  Check check(Dequantize::name);
  check_blocks(check, "y", a.y, a.codes, a.scales, a.block_rows);
  if (!check.ok()) return check.status();
  if (runtime.use_reference(DType::f32)) {
    dequantize_reference(a);
    return {};
  }
  BlockParams params{};
  params.codes = a.codes.as<uint8_t>();
  params.scales = a.scales.as<float>();
  params.y = a.y.as<float>();
  params.codes_stride = a.codes.stride[0];
  params.y_stride = a.y.stride[0];
  params.rows = a.y.shape[0];
  params.columns = a.y.shape[1];
  params.block_rows = a.block_rows;
  params.blocks_across = a.scales.shape[1];
  const auto kernel = kernels(runtime.profile(), runtime.isa()).dequantize;
  return runtime.parallel(Dequantize::name, a.scales.elements(), Runtime::grain(a.block_rows * block_columns * 5),
                          [&](int64_t begin, int64_t end, int) { kernel(params, begin, end); });
}

}  // namespace trilithon::casts

namespace trilithon {

void register_casts(OpRegistry& registry) {
  add_entry<casts::Narrow>(registry);
  add_entry<casts::Widen>(registry);
  add_entry<casts::Quantize>(registry);
  add_entry<casts::Dequantize>(registry);
}

}  // namespace trilithon
