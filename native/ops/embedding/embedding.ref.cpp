#include "ops/embedding/embedding.h"

namespace trilithon::embedding {

template <typename T>
void forward_reference(const Forward& a) {
  for (int64_t t = 0; t < a.y.shape[0]; ++t) {
    for (int64_t i = 0; i < a.y.shape[1]; ++i) a.y.at<T>(t, i) = a.table.at<T>(a.ids.at<int32_t>(t), i);
  }
}

template <typename T>
void backward_reference(const Backward& a) {
  if (!a.accumulate) {
    for (int64_t v = 0; v < a.d_table.shape[0]; ++v) {
      for (int64_t i = 0; i < a.d_table.shape[1]; ++i) a.d_table.at<T>(v, i) = 0;
    }
  }
  for (int64_t t = 0; t < a.d_y.shape[0]; ++t) {
    for (int64_t i = 0; i < a.d_y.shape[1]; ++i) a.d_table.at<T>(a.ids.at<int32_t>(t), i) += a.d_y.at<T>(t, i);
  }
}

template void forward_reference<float>(const Forward&);
template void forward_reference<double>(const Forward&);
template void backward_reference<float>(const Backward&);
template void backward_reference<double>(const Backward&);

}  // namespace trilithon::embedding
