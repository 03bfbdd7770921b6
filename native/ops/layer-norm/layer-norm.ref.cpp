#include <cmath>

#include "ops/layer-norm/layer-norm.h"

namespace trilithon::layer_norm {

template <typename T>
void forward_reference(const Forward& a) {
  const int64_t tokens = a.x.shape[0], width = a.x.shape[1];
  for (int64_t t = 0; t < tokens; ++t) {
    T total = 0;
    for (int64_t i = 0; i < width; ++i) total += a.x.at<T>(t, i);
    const T mean = total / T(width);
    T squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += (a.x.at<T>(t, i) - mean) * (a.x.at<T>(t, i) - mean);
    const T rstd = T(1) / std::sqrt(squares / T(width) + T(a.eps));
    for (int64_t i = 0; i < width; ++i) {
      const T bias = a.bias.present() ? a.bias.at<T>(i) : T(0);
      a.y.at<T>(t, i) = a.weight.at<T>(i) * ((a.x.at<T>(t, i) - mean) * rstd) + bias;
    }
    if (a.mean.present()) a.mean.at<T>(t) = mean;
    if (a.rstd.present()) a.rstd.at<T>(t) = rstd;
  }
}

template <typename T>
void backward_reference(const Backward& a) {
  const int64_t tokens = a.x.shape[0], width = a.x.shape[1];
  const auto normalised = [&a](int64_t t, int64_t i) { return (a.x.at<T>(t, i) - a.mean.at<T>(t)) * a.rstd.at<T>(t); };
  for (int64_t t = 0; t < tokens; ++t) {
    T total = 0, dot = 0;
    for (int64_t i = 0; i < width; ++i) {
      const T g = a.d_y.at<T>(t, i) * a.weight.at<T>(i);
      total += g;
      dot += g * normalised(t, i);
    }
    for (int64_t i = 0; i < width; ++i) {
      const T g = a.d_y.at<T>(t, i) * a.weight.at<T>(i);
      a.d_x.at<T>(t, i) = a.rstd.at<T>(t) * (g - total / T(width) - normalised(t, i) * (dot / T(width)));
    }
  }
  for (int64_t i = 0; i < width; ++i) {
    T d_weight = a.accumulate ? a.d_weight.at<T>(i) : T(0);
    for (int64_t t = 0; t < tokens; ++t) d_weight += a.d_y.at<T>(t, i) * normalised(t, i);
    a.d_weight.at<T>(i) = d_weight;
    if (!a.d_bias.present()) continue;
    T d_bias = a.accumulate ? a.d_bias.at<T>(i) : T(0);
    for (int64_t t = 0; t < tokens; ++t) d_bias += a.d_y.at<T>(t, i);
    a.d_bias.at<T>(i) = d_bias;
  }
}

template void forward_reference<float>(const Forward&);
template void forward_reference<double>(const Forward&);
template void backward_reference<float>(const Backward&);
template void backward_reference<double>(const Backward&);

}  // namespace trilithon::layer_norm
