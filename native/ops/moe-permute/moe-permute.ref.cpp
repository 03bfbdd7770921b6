#include "ops/moe-permute/moe-permute.h"

namespace trilithon::moe_permute {

void plan_reference(const Plan& a) {
  const moe_router::Ids ids = moe_router::ids_of(a.ids);
  const int64_t experts = a.offsets.shape[0] - 1;
  int32_t row = 0;
  for (int64_t e = 0; e < experts; ++e) {
    a.offsets.at<int32_t>(e) = row;
    for (int64_t t = 0; t < a.ids.shape[0]; ++t) {
      for (int64_t slot = 0; slot < a.ids.shape[1]; ++slot) {
        if (moe_router::get_id(ids, t, slot) == e) a.slot_row.at<int32_t>(t, slot) = row++;
      }
    }
  }
  a.offsets.at<int32_t>(experts) = row;
}

template <typename T>
void forward_reference(const Forward& a) {
  for (int64_t t = 0; t < a.x.shape[0]; ++t) {
    for (int64_t slot = 0; slot < a.slot_row.shape[1]; ++slot) {
      for (int64_t i = 0; i < a.x.shape[1]; ++i) a.y.at<T>(a.slot_row.at<int32_t>(t, slot), i) = a.x.at<T>(t, i);
    }
  }
}

template <typename T>
void backward_reference(const Backward& a) {
  for (int64_t t = 0; t < a.d_x.shape[0]; ++t) {
    for (int64_t i = 0; i < a.d_x.shape[1]; ++i) {
      T total = a.accumulate ? a.d_x.at<T>(t, i) : T(0);
      for (int64_t slot = 0; slot < a.slot_row.shape[1]; ++slot) total += a.d_y.at<T>(a.slot_row.at<int32_t>(t, slot), i);
      a.d_x.at<T>(t, i) = total;
    }
  }
}

template void forward_reference<float>(const Forward&);
template void forward_reference<double>(const Forward&);
template void backward_reference<float>(const Backward&);
template void backward_reference<double>(const Backward&);

}  // namespace trilithon::moe_permute
