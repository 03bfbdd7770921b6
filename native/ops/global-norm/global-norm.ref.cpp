#include <cmath>

#include "ops/global-norm/global-norm.h"

namespace trilithon::global_norm {

template <typename T>
void square_sum_reference(const SquareSum& a) {
  double squares = 0, not_finite = 0;
  for (int64_t i = 0; i < a.x.elements(); ++i) {
    const T value = a.x.as<T>()[i];
    squares += static_cast<double>(value) * static_cast<double>(value);
    if (!std::isfinite(value)) ++not_finite;
  }
  a.sums.at<double>(a.slot, 0) = squares;
  a.sums.at<double>(a.slot, 1) = not_finite;
}

void finish_reference(const Finish& a) {
  double squares = 0, not_finite = 0;
  for (int64_t slot = 0; slot < a.sums.shape[0]; ++slot) {
    squares += a.sums.at<double>(slot, 0);
    not_finite += a.sums.at<double>(slot, 1);
  }
  const double norm = std::sqrt(squares);
  // As torch's clip_grad_norm_: the small addend keeps a norm of 0 from dividing by it.
  const double factor = a.max_norm / (norm + 1e-6);
  a.result.at<double>(0) = norm;
  a.result.at<double>(1) = a.max_norm == 0 || factor > 1 ? 1 : factor;
  a.result.at<double>(2) = not_finite;
}

template void square_sum_reference<float>(const SquareSum&);
template void square_sum_reference<double>(const SquareSum&);

}  // namespace trilithon::global_norm
