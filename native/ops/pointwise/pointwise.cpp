#include "ops/pointwise/pointwise.h"

#include <cstring>

#include "include/check.h"
#include "pool/runtime.h"

TRILITHON_DEFINE_KERNELS(pointwise)

namespace trilithon::pointwise {
namespace {

// The elements of tensors of one shape as lines: the innermost dim after dims that lie one behind the other in all of them
// have been joined, cut where a line is long.
class Lines {
 public:
  Lines(std::initializer_list<const TensorView*> views) {
    for (const TensorView* view : views) operands_[count_++] = {static_cast<char*>(view->data), {}, dtype_size(view->dtype)};
    const TensorView& first = **views.begin();
    for (int dim = 0; dim < first.rank; ++dim) {
      if (first.shape[dim] == 1) continue;
      bool joins = rank_ > 0;
      int i = 0;
      for (const TensorView* view : views) joins = joins && operands_[i++].stride[rank_ - 1] == view->stride[dim] * first.shape[dim];
      if (!joins) ++rank_;
      shape_[rank_ - 1] = joins ? shape_[rank_ - 1] * first.shape[dim] : first.shape[dim];
      i = 0;
      for (const TensorView* view : views) operands_[i++].stride[rank_ - 1] = view->stride[dim];
    }
    if (rank_ == 0) shape_[rank_++] = 1;
    lines_ = 1;
    for (int dim = 0; dim + 1 < rank_; ++dim) lines_ *= shape_[dim];
    pieces_ = (length() + piece - 1) / piece;
  }

  int64_t step(int operand) const { return operands_[operand].stride[rank_ - 1]; }

  // Calls body(addresses, elements) for each piece of a line, `addresses` being those of its first elements.
  template <typename Body>
  Status parallel(const char* name, Runtime& runtime, Body body) const {
    const int64_t elements = length() < piece ? length() : piece;
    return runtime.parallel(name, lines_ * pieces_, Runtime::grain(16 * elements), [&](int64_t begin, int64_t end, int) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t offset = index % pieces_ * piece;
        char* addresses[3];
        for (int i = 0; i < count_; ++i) addresses[i] = address(operands_[i], index / pieces_, offset);
        body(addresses, length() - offset < piece ? length() - offset : piece);
      }
    });
  }

 private:
  static constexpr int64_t piece = 16 * 1024;

  struct Operand {
    char* data;
    int64_t stride[max_rank];
    size_t size;
  };

  int64_t length() const { return shape_[rank_ - 1]; }

  char* address(const Operand& operand, int64_t line, int64_t offset) const {
    int64_t elements = offset * operand.stride[rank_ - 1];
    for (int dim = rank_ - 2; dim >= 0; --dim) {
      elements += line % shape_[dim] * operand.stride[dim];
      line /= shape_[dim];
    }
    return operand.data + elements * static_cast<int64_t>(operand.size);
  }

  Operand operands_[3];
  int64_t shape_[max_rank] = {};
  int count_ = 0, rank_ = 0;
  int64_t lines_ = 0, pieces_ = 0;
};

Line line(char* address, int64_t step) { return {reinterpret_cast<float*>(address), step}; }

template <typename T>
void copy_line(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t count) {
  const T* x = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) y[i * to_step] = x[i * from_step];
}

template <typename Args>
Status check_binary(const Args& a) {
  Check check(Args::name);
  check.same_shape("b", a.b, "a", a.a);
  check.same_shape("y", a.y, "a", a.a);
  return check.status();
}

template <typename Args>
Status check_unary(const Args& a) {
  Check check(Args::name);
  check.same_shape("y", a.y, "x", a.x);
  return check.status();
}

// y = kernel(a, b, y) for one of the kernels of two inputs.
template <typename Args, typename Kernel>
Status run_binary(const Args& a, Runtime& runtime, Kernel kernel) {
  const Lines lines{&a.a, &a.b, &a.y};
  return lines.parallel(Args::name, runtime, [&](char* const* at, int64_t count) {
    kernel(line(at[0], lines.step(0)), line(at[1], lines.step(1)), line(at[2], lines.step(2)), count);
  });
}

template <typename Args, typename Kernel>
Status run_scaled(const Args& a, Runtime& runtime, Kernel kernel) {
  const Lines lines{&a.x, &a.y};
  const float factor = static_cast<float>(a.factor);
  return lines.parallel(Args::name, runtime, [&](char* const* at, int64_t count) {
    kernel(line(at[0], lines.step(0)), line(at[1], lines.step(1)), factor, count);
  });
}

}  // namespace

Status run(const Fill& a, Runtime& runtime) {
  if (a.y.elements() == 0) return {};
  if (runtime.use_reference(a.y.dtype)) {
    with_floating(a.y.dtype, [&]<typename T>() { fill_reference<T>(a); });
    return {};
  }
  const auto kernel = kernels(runtime.profile(), runtime.isa()).fill;
  const Lines lines{&a.y};
  return lines.parallel(Fill::name, runtime,
                        [&](char* const* at, int64_t count) { kernel(line(at[0], lines.step(0)), static_cast<float>(a.value), count); });
}

Status run(const Copy& a, Runtime& runtime) {
  Check check(Copy::name);
  check.same_shape("y", a.y, "x", a.x);
  check.that(a.x.dtype == a.y.dtype, "y", std::string("dtype ") + dtype_name(a.x.dtype) + ", which x has", dtype_name(a.y.dtype));
  if (!check.ok() || a.x.elements() == 0) return check.status();
  if (runtime.options().backend == Backend::reference) {
    copy_reference(a);
    return {};
  }
  const Lines lines{&a.x, &a.y};
  const size_t size = dtype_size(a.x.dtype);
  const int64_t from = lines.step(0), to = lines.step(1);
  return lines.parallel(Copy::name, runtime, [&](char* const* at, int64_t count) {
    if (from == 1 && to == 1) {
      std::memcpy(at[1], at[0], static_cast<size_t>(count) * size);
    } else if (size == 8) {
      copy_line<uint64_t>(at[0], from, at[1], to, count);
    } else if (size == 4) {
      copy_line<uint32_t>(at[0], from, at[1], to, count);
    } else if (size == 2) {
      copy_line<uint16_t>(at[0], from, at[1], to, count);
    } else {
      copy_line<uint8_t>(at[0], from, at[1], to, count);
    }
  });
}

Status run(const Add& a, Runtime& runtime) {
  if (Status status = check_binary(a); !status.ok() || a.y.elements() == 0) return status;
  if (!runtime.use_reference(a.y.dtype)) return run_binary(a, runtime, kernels(runtime.profile(), runtime.isa()).add);
  with_floating(a.y.dtype, [&]<typename T>() { add_reference<T>(a); });
  return {};
}

Status run(const Multiply& a, Runtime& runtime) {
  if (Status status = check_binary(a); !status.ok() || a.y.elements() == 0) return status;
  if (!runtime.use_reference(a.y.dtype)) return run_binary(a, runtime, kernels(runtime.profile(), runtime.isa()).multiply);
  with_floating(a.y.dtype, [&]<typename T>() { multiply_reference<T>(a); });
  return {};
}

Status run(const MultiplyAdd& a, Runtime& runtime) {
  if (Status status = check_binary(a); !status.ok() || a.y.elements() == 0) return status;
  if (!runtime.use_reference(a.y.dtype)) return run_binary(a, runtime, kernels(runtime.profile(), runtime.isa()).multiply_add);
  with_floating(a.y.dtype, [&]<typename T>() { multiply_add_reference<T>(a); });
  return {};
}

Status run(const Scale& a, Runtime& runtime) {
  if (Status status = check_unary(a); !status.ok() || a.y.elements() == 0) return status;
  if (!runtime.use_reference(a.y.dtype)) return run_scaled(a, runtime, kernels(runtime.profile(), runtime.isa()).scale);
  with_floating(a.y.dtype, [&]<typename T>() { scale_reference<T>(a); });
  return {};
}

Status run(const AddScaled& a, Runtime& runtime) {
  if (Status status = check_unary(a); !status.ok() || a.y.elements() == 0) return status;
  if (!runtime.use_reference(a.y.dtype)) return run_scaled(a, runtime, kernels(runtime.profile(), runtime.isa()).add_scaled);
  with_floating(a.y.dtype, [&]<typename T>() { add_scaled_reference<T>(a); });
  return {};
}

}  // namespace trilithon::pointwise

namespace trilithon {

void register_pointwise(OpRegistry& registry) {
  add_entry<pointwise::Fill>(registry);
  add_entry<pointwise::Copy>(registry);
  add_entry<pointwise::Add>(registry);
  add_entry<pointwise::Multiply>(registry);
  add_entry<pointwise::MultiplyAdd>(registry);
  add_entry<pointwise::Scale>(registry);
  add_entry<pointwise::AddScaled>(registry);
}

}  // namespace trilithon
