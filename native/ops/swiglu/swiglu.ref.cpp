#include <cmath>

#include "ops/swiglu/swiglu.h"

namespace trilithon::swiglu {

template <typename T>
void forward_reference(const Forward& a) {
  for (int64_t t = 0; t < a.y.shape[0]; ++t) {
    for (int64_t i = 0; i < a.y.shape[1]; ++i) {
      const T gate = a.gate.at<T>(t, i);
      a.y.at<T>(t, i) = gate / (T(1) + std::exp(-gate)) * a.up.at<T>(t, i);
    }
  }
}

template <typename T>
void backward_reference(const Backward& a) {
  for (int64_t t = 0; t < a.d_y.shape[0]; ++t) {
    for (int64_t i = 0; i < a.d_y.shape[1]; ++i) {
      const T gate = a.gate.at<T>(t, i), up = a.up.at<T>(t, i), d_y = a.d_y.at<T>(t, i);
      const T sigmoid = T(1) / (T(1) + std::exp(-gate));
      a.d_gate.at<T>(t, i) = d_y * up * (sigmoid * (T(1) + gate * (T(1) - sigmoid)));
      a.d_up.at<T>(t, i) = d_y * (gate * sigmoid);
    }
  }
}

template void forward_reference<float>(const Forward&);
template void forward_reference<double>(const Forward&);
template void backward_reference<float>(const Backward&);
template void backward_reference<double>(const Backward&);

}  // namespace trilithon::swiglu
