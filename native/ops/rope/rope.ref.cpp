#include <cmath>

#include "ops/rope/rope.h"

namespace trilithon::rope {

template <typename T>
void tables_reference(const Tables& a) {
  for (int64_t t = 0; t < a.cosines.shape[0]; ++t) {
    for (int64_t i = 0; i < a.cosines.shape[1]; ++i) {
      // The product is a float in every precision: that is how the models' angles are defined.
      const T angle = static_cast<float>(a.positions.at<int32_t>(t)) * static_cast<float>(a.inverse_frequencies.at<T>(i));
      a.cosines.at<T>(t, i) = std::cos(angle) * T(a.scale);
      a.sines.at<T>(t, i) = std::sin(angle) * T(a.scale);
    }
  }
}

template <typename T>
void turn_reference(const TensorView& x, const TensorView& cosines, const TensorView& sines, const TensorView& y, bool interleaved,
                    int direction) {
  const int64_t half = cosines.shape[1];
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    for (int64_t h = 0; h < x.shape[1]; ++h) {
      for (int64_t i = 0; i < half; ++i) {
        const int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
        const T a = x.at<T>(t, h, first), b = x.at<T>(t, h, second);
        const T c = cosines.at<T>(t, i), s = T(direction) * sines.at<T>(t, i);
        y.at<T>(t, h, first) = a * c - b * s;
        y.at<T>(t, h, second) = b * c + a * s;
      }
      for (int64_t i = 2 * half; i < x.shape[2]; ++i) y.at<T>(t, h, i) = x.at<T>(t, h, i);
    }
  }
}

template void tables_reference<float>(const Tables&);
template void tables_reference<double>(const Tables&);
template void turn_reference<float>(const TensorView&, const TensorView&, const TensorView&, const TensorView&, bool, int);
template void turn_reference<double>(const TensorView&, const TensorView&, const TensorView&, const TensorView&, bool, int);

}  // namespace trilithon::rope
