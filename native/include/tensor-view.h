// TensorView: where a tensor's elements are. It owns nothing.
#pragma once

#include <cstdint>

#include "include/dtype.h"

namespace trilithon {

inline constexpr int max_rank = 6;

struct TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  int64_t shape[max_rank] = {};
  int64_t stride[max_rank] = {};  // in elements

  // False for an optional argument that was left out.
  bool present() const { return data != nullptr; }

  int64_t elements() const {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= shape[i];
    return count;
  }

  // Elements of one step along the first dim.
  int64_t row_elements() const {
    int64_t count = 1;
    for (int i = 1; i < rank; ++i) count *= shape[i];
    return count;
  }

  // Row-major without gaps, from dim `from` inwards.
  bool contiguous(int from = 0) const {
    int64_t expected = 1;
    for (int i = rank - 1; i >= from; --i) {
      if (shape[i] != 1 && stride[i] != expected) return false;
      expected *= shape[i];
    }
    return true;
  }

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }

  // Start of row `index` along the first dim.
  template <typename T>
  T* row(int64_t index) const {
    return static_cast<T*>(data) + index * stride[0];
  }

  // One element by its coordinates: slow and obviously right, for references.
  template <typename T, typename... Index>
  T& at(Index... index) const {
    const int64_t indices[] = {static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (int i = 0; i < static_cast<int>(sizeof...(Index)); ++i) offset += indices[i] * stride[i];
    return static_cast<T*>(data)[offset];
  }
};

// A row-major view without gaps.
inline TensorView contiguous_view(void* data, DType dtype, int rank, const int64_t* shape) {
  TensorView view;
  view.data = data;
  view.dtype = dtype;
  view.rank = rank;
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    view.shape[i] = shape[i];
    view.stride[i] = step;
    step *= shape[i];
  }
  return view;
}

// Bytes from the first to one past the last element.
inline int64_t span_bytes(const TensorView& view) {
  int64_t last = 0;
  for (int i = 0; i < view.rank; ++i) {
    if (view.shape[i] == 0) return 0;
    last += (view.shape[i] - 1) * view.stride[i];
  }
  return (last + 1) * static_cast<int64_t>(dtype_size(view.dtype));
}

}  // namespace trilithon
