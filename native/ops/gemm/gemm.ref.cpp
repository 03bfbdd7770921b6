#include "ops/gemm/gemm.h"

namespace trilithon::gemm {

template <typename T>
void forward_reference(const Forward& a) {
  const int64_t tokens = a.x.shape[0], k = a.x.shape[1], n = a.y.shape[1];
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t j = 0; j < n; ++j) {
      T total = a.accumulate ? a.y.at<T>(t, j) : T(0);
      for (int64_t i = 0; i < k; ++i)
        total += a.x.at<T>(t, i) * (a.weight.present() ? a.weight.at<T>(j, i) : panel_element<T>(a.packed, i, j));
      a.y.at<T>(t, j) = a.bias.present() ? total + a.bias.at<T>(j) : total;
    }
  }
}

template <typename T>
void backward_x_reference(const BackwardX& a) {
  const int64_t tokens = a.d_y.shape[0], n = a.d_y.shape[1], k = a.d_x.shape[1];
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < k; ++i) {
      T total = a.accumulate ? a.d_x.at<T>(t, i) : T(0);
      for (int64_t j = 0; j < n; ++j)
        total += a.d_y.at<T>(t, j) * (a.weight.present() ? a.weight.at<T>(j, i) : panel_element<T>(a.packed, j, i));
      a.d_x.at<T>(t, i) = total;
    }
  }
}

template <typename T>
void backward_weight_reference(const BackwardWeight& a) {
  const int64_t tokens = a.d_y.shape[0], n = a.d_y.shape[1], k = a.x.shape[1];
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < k; ++i) {
      T total = a.accumulate ? a.d_weight.at<T>(j, i) : T(0);
      for (int64_t t = 0; t < tokens; ++t) total += a.d_y.at<T>(t, j) * a.x.at<T>(t, i);
      a.d_weight.at<T>(j, i) = total;
    }
    if (!a.d_bias.present()) continue;
    T total = a.accumulate ? a.d_bias.at<T>(j) : T(0);
    for (int64_t t = 0; t < tokens; ++t) total += a.d_y.at<T>(t, j);
    a.d_bias.at<T>(j) = total;
  }
}

template <typename T>
void pack_reference(const Pack& a) {
  const int64_t columns = a.weight.shape[a.backward ? 1 : 0], depth = a.packed.shape[1];
  for (int64_t panel = 0; panel < a.packed.shape[0]; ++panel) {
    for (int64_t i = 0; i < depth; ++i) {
      for (int64_t lane = 0; lane < 32; ++lane) {
        const int64_t column = panel * 32 + lane;
        T value = 0;
        if (column < columns) value = a.backward ? a.weight.at<T>(i, column) : a.weight.at<T>(column, i);
        a.packed.at<T>(panel, i, lane) = value;
      }
    }
  }
}

template void forward_reference<float>(const Forward&);
template void forward_reference<double>(const Forward&);
template void backward_x_reference<float>(const BackwardX&);
template void backward_x_reference<double>(const BackwardX&);
template void backward_weight_reference<float>(const BackwardWeight&);
template void backward_weight_reference<double>(const BackwardWeight&);
template void pack_reference<float>(const Pack&);
template void pack_reference<double>(const Pack&);

}  // namespace trilithon::gemm
