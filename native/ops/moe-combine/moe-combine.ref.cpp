#include "ops/moe-combine/moe-combine.h"

namespace trilithon::moe_combine {

template <typename T>
void forward_reference(const Forward& a) {
  for (int64_t t = 0; t < a.y.shape[0]; ++t) {
    for (int64_t i = 0; i < a.y.shape[1]; ++i) {
      T total = a.accumulate ? a.y.at<T>(t, i) : T(0);
      for (int64_t slot = 0; slot < a.slot_row.shape[1]; ++slot)
        total += a.weights.at<T>(t, slot) * a.x.at<T>(a.slot_row.at<int32_t>(t, slot), i);
      a.y.at<T>(t, i) = total;
    }
  }
}

template <typename T>
void backward_reference(const Backward& a) {
  for (int64_t t = 0; t < a.d_y.shape[0]; ++t) {
    for (int64_t slot = 0; slot < a.slot_row.shape[1]; ++slot) {
      const int64_t row = a.slot_row.at<int32_t>(t, slot);
      T dot = 0;
      for (int64_t i = 0; i < a.d_y.shape[1]; ++i) dot += a.d_y.at<T>(t, i) * a.x.at<T>(row, i);
      a.d_weights.at<T>(t, slot) = dot;
      for (int64_t i = 0; i < a.d_y.shape[1]; ++i) a.d_x.at<T>(row, i) = a.weights.at<T>(t, slot) * a.d_y.at<T>(t, i);
    }
  }
}

template void forward_reference<float>(const Forward&);
template void forward_reference<double>(const Forward&);
template void backward_reference<float>(const Backward&);
template void backward_reference<double>(const Backward&);

}  // namespace trilithon::moe_combine
