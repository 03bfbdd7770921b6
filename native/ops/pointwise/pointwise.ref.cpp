#include <cstring>

#include "ops/pointwise/pointwise.h"

namespace trilithon::pointwise {
namespace {

// Element number `index` in row-major order.
template <typename T>
T& element(const TensorView& view, int64_t index) {
  int64_t offset = 0;
  for (int i = view.rank - 1; i >= 0; --i) {
    offset += index % view.shape[i] * view.stride[i];
    index /= view.shape[i];
  }
  return static_cast<T*>(view.data)[offset];
}

}  // namespace

template <typename T>
void fill_reference(const Fill& a) {
  for (int64_t i = 0; i < a.y.elements(); ++i) element<T>(a.y, i) = T(a.value);
}

void copy_reference(const Copy& a) {
  const size_t size = dtype_size(a.x.dtype);
  for (int64_t i = 0; i < a.x.elements(); ++i) {
    // The place of an element, counted in elements of its own size.
    int64_t rest = i, from = 0, to = 0;
    for (int dim = a.x.rank - 1; dim >= 0; --dim) {
      from += rest % a.x.shape[dim] * a.x.stride[dim];
      to += rest % a.x.shape[dim] * a.y.stride[dim];
      rest /= a.x.shape[dim];
    }
    std::memcpy(a.y.as<char>() + to * static_cast<int64_t>(size), a.x.as<char>() + from * static_cast<int64_t>(size), size);
  }
}

template <typename T>
void add_reference(const Add& a) {
  for (int64_t i = 0; i < a.y.elements(); ++i) element<T>(a.y, i) = element<T>(a.a, i) + element<T>(a.b, i);
}

template <typename T>
void multiply_reference(const Multiply& a) {
  for (int64_t i = 0; i < a.y.elements(); ++i) element<T>(a.y, i) = element<T>(a.a, i) * element<T>(a.b, i);
}

template <typename T>
void multiply_add_reference(const MultiplyAdd& a) {
  for (int64_t i = 0; i < a.y.elements(); ++i) element<T>(a.y, i) += element<T>(a.a, i) * element<T>(a.b, i);
}

template <typename T>
void scale_reference(const Scale& a) {
  for (int64_t i = 0; i < a.y.elements(); ++i) element<T>(a.y, i) = T(a.factor) * element<T>(a.x, i);
}

template <typename T>
void add_scaled_reference(const AddScaled& a) {
  for (int64_t i = 0; i < a.y.elements(); ++i) element<T>(a.y, i) += T(a.factor) * element<T>(a.x, i);
}

template void fill_reference<float>(const Fill&);
template void fill_reference<double>(const Fill&);
template void add_reference<float>(const Add&);
template void add_reference<double>(const Add&);
template void multiply_reference<float>(const Multiply&);
template void multiply_reference<double>(const Multiply&);
template void multiply_add_reference<float>(const MultiplyAdd&);
template void multiply_add_reference<double>(const MultiplyAdd&);
template void scale_reference<float>(const Scale&);
template void scale_reference<double>(const Scale&);
template void add_scaled_reference<float>(const AddScaled&);
template void add_scaled_reference<double>(const AddScaled&);

}  // namespace trilithon::pointwise
