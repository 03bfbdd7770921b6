#include <cmath>

#include "ops/elementary/elementary.h"

namespace trilithon::elementary {

template <typename T>
void map_reference(Function function, const TensorView& x, const TensorView& y) {
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    const T v = x.at<T>(i);
    T result = 0;
    switch (function) {
      case Function::exp:
        result = std::exp(v);
        break;
      case Function::log:
        result = std::log(v);
        break;
      case Function::sin:
        result = std::sin(v);
        break;
      case Function::cos:
        result = std::cos(v);
        break;
      case Function::rsqrt:
        result = T(1) / std::sqrt(v);
        break;
      case Function::sigmoid:
        result = T(1) / (T(1) + std::exp(-v));
        break;
      case Function::silu:
        result = v / (T(1) + std::exp(-v));
        break;
    }
    y.at<T>(i) = result;
  }
}

template void map_reference<float>(Function, const TensorView&, const TensorView&);
template void map_reference<double>(Function, const TensorView&, const TensorView&);

}  // namespace trilithon::elementary
