#include <cmath>

#include "ops/rms-norm/rms-norm.h"

namespace trilithon::rms_norm {

template <typename T>
void forward_reference(const Forward& a) {
  const int64_t tokens = a.x.shape[0], width = a.x.shape[1];
  for (int64_t t = 0; t < tokens; ++t) {
    T squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += a.x.at<T>(t, i) * a.x.at<T>(t, i);
    const T rstd = T(1) / std::sqrt(squares / T(width) + T(a.eps));
    for (int64_t i = 0; i < width; ++i) a.y.at<T>(t, i) = a.weight.at<T>(i) * (a.x.at<T>(t, i) * rstd);
    if (a.rstd.present()) a.rstd.at<T>(t) = rstd;
  }
}

template <typename T>
void backward_reference(const Backward& a) {
  const int64_t tokens = a.x.shape[0], width = a.x.shape[1];
  for (int64_t t = 0; t < tokens; ++t) {
    const T rstd = a.rstd.at<T>(t);
    T dot = 0;
    for (int64_t i = 0; i < width; ++i) dot += a.d_y.at<T>(t, i) * a.weight.at<T>(i) * (a.x.at<T>(t, i) * rstd);
    for (int64_t i = 0; i < width; ++i) {
      const T normalised = a.x.at<T>(t, i) * rstd;
      a.d_x.at<T>(t, i) = rstd * (a.d_y.at<T>(t, i) * a.weight.at<T>(i) - normalised * (dot / T(width)));
    }
  }
  for (int64_t i = 0; i < width; ++i) {
    T total = a.accumulate ? a.d_weight.at<T>(i) : T(0);
    for (int64_t t = 0; t < tokens; ++t) total += a.d_y.at<T>(t, i) * (a.x.at<T>(t, i) * a.rstd.at<T>(t));
    a.d_weight.at<T>(i) = total;
  }
}

template void forward_reference<float>(const Forward&);
template void forward_reference<double>(const Forward&);
template void backward_reference<float>(const Backward&);
template void backward_reference<double>(const Backward&);

}  // namespace trilithon::rms_norm
