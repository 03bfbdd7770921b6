#include "ops/grouped-gemm/grouped-gemm.h"

namespace trilithon::grouped_gemm {
namespace {

// weight[expert, j, i], where it is or in the panels, whose lanes run along j (or along i, for backward).
template <typename T>
T weight_at(const TensorView& weight, const TensorView& packed, bool backward, int64_t expert, int64_t j, int64_t i) {
  if (weight.present()) return weight.at<T>(expert, j, i);
  return backward ? packed.at<T>(expert, i / 32, j, i % 32) : packed.at<T>(expert, j / 32, i, j % 32);
}

// Calls body(expert, row) for each row.
template <typename Body>
void for_rows(const TensorView& expert_starts, Body body) {
  for (int64_t e = 0; e + 1 < expert_starts.shape[0]; ++e) {
    for (int64_t row = expert_starts.at<int32_t>(e); row < expert_starts.at<int32_t>(e + 1); ++row) body(e, row);
  }
}

}  // namespace

template <typename T>
void forward_reference(const Forward& a) {
  const int64_t k = a.x.shape[1], n = a.y.shape[1];
  for_rows(a.expert_starts, [&](int64_t e, int64_t row) {
    for (int64_t j = 0; j < n; ++j) {
      T total = a.accumulate ? a.y.at<T>(row, j) : T(0);
      for (int64_t i = 0; i < k; ++i) total += a.x.at<T>(row, i) * weight_at<T>(a.weight, a.packed, false, e, j, i);
      a.y.at<T>(row, j) = total;
    }
  });
}

template <typename T>
void backward_x_reference(const BackwardX& a) {
  const int64_t k = a.d_x.shape[1], n = a.d_y.shape[1];
  for_rows(a.expert_starts, [&](int64_t e, int64_t row) {
    for (int64_t i = 0; i < k; ++i) {
      T total = a.accumulate ? a.d_x.at<T>(row, i) : T(0);
      for (int64_t j = 0; j < n; ++j) total += a.d_y.at<T>(row, j) * weight_at<T>(a.weight, a.packed, true, e, j, i);
      a.d_x.at<T>(row, i) = total;
    }
  });
}

template <typename T>
void backward_weight_reference(const BackwardWeight& a) {
  const int64_t n = a.d_weight.shape[1], k = a.d_weight.shape[2];
  for (int64_t e = 0; e < a.d_weight.shape[0]; ++e) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < k; ++i) {
        T total = a.accumulate ? a.d_weight.at<T>(e, j, i) : T(0);
        for (int64_t row = a.expert_starts.at<int32_t>(e); row < a.expert_starts.at<int32_t>(e + 1); ++row)
          total += a.d_y.at<T>(row, j) * a.x.at<T>(row, i);
        a.d_weight.at<T>(e, j, i) = total;
      }
    }
  }
}

template <typename T>
void pack_reference(const Pack& a) {
  const int64_t columns = a.weight.shape[a.backward ? 2 : 1], depth = a.packed.shape[2];
  for (int64_t e = 0; e < a.packed.shape[0]; ++e) {
    for (int64_t panel = 0; panel < a.packed.shape[1]; ++panel) {
      for (int64_t i = 0; i < depth; ++i) {
        for (int64_t lane = 0; lane < 32; ++lane) {
          const int64_t column = panel * 32 + lane;
          T value = 0;
          if (column < columns) value = a.backward ? a.weight.at<T>(e, i, column) : a.weight.at<T>(e, column, i);
          a.packed.at<T>(e, panel, i, lane) = value;
        }
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

}  // namespace trilithon::grouped_gemm
