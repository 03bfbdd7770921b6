#include <algorithm>
#include <cmath>

#include "include/float-formats.h"
#include "ops/casts/casts.h"

namespace trilithon::casts {

void narrow_reference(const Narrow& a) {
  const float* x = a.x.as<float>();
  for (int64_t i = 0; i < a.x.elements(); ++i) {
    if (a.y.dtype == DType::bf16) a.y.as<uint16_t>()[i] = float_to_bf16(x[i]);
    if (a.y.dtype == DType::f16) a.y.as<uint16_t>()[i] = float_to_f16(x[i]);
    if (a.y.dtype == DType::e4m3) a.y.as<uint8_t>()[i] = float_to_e4m3(x[i]);
    if (a.y.dtype == DType::e5m2) a.y.as<uint8_t>()[i] = float_to_e5m2(x[i]);
  }
}

void widen_reference(const Widen& a) {
  float* y = a.y.as<float>();
  for (int64_t i = 0; i < a.x.elements(); ++i) {
    if (a.x.dtype == DType::bf16) y[i] = bf16_to_float(a.x.as<uint16_t>()[i]);
    if (a.x.dtype == DType::f16) y[i] = f16_to_float(a.x.as<uint16_t>()[i]);
    if (a.x.dtype == DType::e4m3) y[i] = e4m3_to_float(a.x.as<uint8_t>()[i]);
    if (a.x.dtype == DType::e5m2) y[i] = e5m2_to_float(a.x.as<uint8_t>()[i]);
  }
}

void quantize_reference(const Quantize& a) {
  const int64_t rows = a.x.shape[0], columns = a.x.shape[1];
  for (int64_t down = 0; down < a.scales.shape[0]; ++down) {
    for (int64_t across = 0; across < a.scales.shape[1]; ++across) {
      const int64_t row_end = std::min(rows, (down + 1) * a.block_rows), column_end = std::min(columns, (across + 1) * block_columns);
      float amax = static_cast<float>(a.amax_floor);
      for (int64_t r = down * a.block_rows; r < row_end; ++r) {
        // A NaN is not larger than anything.
        for (int64_t c = across * block_columns; c < column_end; ++c)
          if (std::fabs(a.x.at<float>(r, c)) > amax) amax = std::fabs(a.x.at<float>(r, c));
      }
      float scale = amax / 448.0f;
      if (a.power_of_two && std::isfinite(scale)) {
        int exponent;
        const float fraction = std::frexp(scale, &exponent);  // scale = fraction * 2^exponent, fraction in [1/2, 1)
        scale = std::ldexp(1.0f, fraction == 0.5f ? exponent - 1 : exponent);
      }
      a.scales.at<float>(down, across) = scale;
      for (int64_t r = down * a.block_rows; r < row_end; ++r) {
        for (int64_t c = across * block_columns; c < column_end; ++c)
          a.codes.at<uint8_t>(r, c) = float_to_e4m3(a.x.at<float>(r, c) * (1.0f / scale));
      }
    }
  }
}

void dequantize_reference(const Dequantize& a) {
  for (int64_t r = 0; r < a.y.shape[0]; ++r) {
    for (int64_t c = 0; c < a.y.shape[1]; ++c)
      a.y.at<float>(r, c) = e4m3_to_float(a.codes.at<uint8_t>(r, c)) * a.scales.at<float>(r / a.block_rows, c / block_columns);
  }
}

}  // namespace trilithon::casts
