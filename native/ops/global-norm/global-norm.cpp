#include "ops/global-norm/global-norm.h"

#include "include/check.h"
#include "pool/runtime.h"
#include "pool/scratch-arrays.h"

TRILITHON_DEFINE_KERNELS(global_norm)

namespace trilithon::global_norm {

Status run(const SquareSum& a, Runtime& runtime) {
  Check check(SquareSum::name);
  Dim slots("slots"), two("2", 2);
  check.shape("sums", a.sums, {&slots, &two});
  check.that(a.slot >= 0 && a.slot < slots, "slot", "0 to " + std::to_string(slots - 1), std::to_string(a.slot));
  if (!check.ok()) return check.status();
  if (runtime.use_reference(a.x.dtype)) {
    with_floating(a.x.dtype, [&]<typename T>() { square_sum_reference<T>(a); });
    return {};
  }
  const int64_t elements = a.x.elements(), blocks = (elements + block_elements - 1) / block_elements;
  BlockSum* sums = nullptr;
  ScratchArrays arrays;
  arrays.add(sums, blocks);
  if (Status status = arrays.reserve(SquareSum::name, runtime); !status.ok()) return status;
  const auto kernel = kernels(runtime.profile(), runtime.isa()).block;
  Status status = runtime.parallel(SquareSum::name, blocks, Runtime::grain(block_elements * 4), [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * block_elements;
      sums[block] = kernel(a.x.as<float>() + first, std::min(block_elements, elements - first));
    }
  });
  if (!status.ok()) return status;
  double squares = 0, not_finite = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    squares += static_cast<double>(sums[block].squares);
    not_finite += static_cast<double>(sums[block].not_finite);
  }
  a.sums.at<double>(a.slot, 0) = squares;
  a.sums.at<double>(a.slot, 1) = not_finite;
  return {};
}

// A handful of numbers: the reference is the op.
Status run(const Finish& a, Runtime&) {
  Check check(Finish::name);
  Dim slots("slots"), two("2", 2), three("3", 3);
  check.shape("sums", a.sums, {&slots, &two});
  check.shape("result", a.result, {&three});
  check.that(a.max_norm >= 0, "max_norm", "a number >= 0, 0 for no limit", number_text(a.max_norm));
  if (!check.ok()) return check.status();
  finish_reference(a);
  return {};
}

}  // namespace trilithon::global_norm

namespace trilithon {

void register_global_norm(OpRegistry& registry) {
  add_entry<global_norm::SquareSum>(registry);
  add_entry<global_norm::Finish>(registry);
}

}  // namespace trilithon
