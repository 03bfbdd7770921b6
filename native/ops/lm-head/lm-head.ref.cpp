#include <cmath>
#include <limits>
#include <vector>

#include "ops/lm-head/lm-head.h"

namespace trilithon::lm_head {
namespace {

// Logits of one row, divided by the temperature.
template <typename T>
std::vector<T> scaled_logits(const TensorView& hidden, const TensorView& weight, const TensorView& packed, int64_t vocabulary,
                             T temperature, int64_t t) {
  std::vector<T> z(static_cast<size_t>(vocabulary));
  for (int64_t v = 0; v < vocabulary; ++v) {
    T logit = 0;
    for (int64_t i = 0; i < hidden.shape[1]; ++i) logit += hidden.at<T>(t, i) * weight_element<T>(weight, packed, v, i);
    z[static_cast<size_t>(v)] = logit / temperature;
  }
  return z;
}

}  // namespace

template <typename T>
void forward_reference(const Forward& a) {
  const int64_t vocabulary = a.weight.present() ? a.weight.shape[0] : a.vocabulary;
  for (int64_t t = 0; t < a.hidden.shape[0]; ++t) {
    const std::vector<T> z = scaled_logits<T>(a.hidden, a.weight, a.packed, vocabulary, a.temperature.at<T>(t), t);
    T top = -std::numeric_limits<T>::infinity(), sum = 0, weighted = 0;
    for (const T value : z) {
      if (value > top) top = value;
    }
    for (const T value : z) {
      sum += std::exp(value - top);
      weighted += std::exp(value - top) * (value - top);
    }
    a.logprob.at<T>(t) = z[static_cast<size_t>(a.targets.at<int32_t>(t))] - top - std::log(sum);
    if (a.entropy.present()) a.entropy.at<T>(t) = std::log(sum) - weighted / sum;
    if (a.stats.present()) {
      a.stats.at<T>(t, 0) = top;
      a.stats.at<T>(t, 1) = std::log(sum);
    }
  }
}

template <typename T>
void backward_reference(const Backward& a) {
  const int64_t vocabulary = a.weight.shape[0], width = a.weight.shape[1];
  if (a.d_weight.present() && !a.accumulate) {
    for (int64_t v = 0; v < vocabulary; ++v) {
      for (int64_t i = 0; i < width; ++i) a.d_weight.at<T>(v, i) = 0;
    }
  }
  for (int64_t t = 0; t < a.hidden.shape[0]; ++t) {
    const T temperature = a.temperature.at<T>(t), gradient = a.d_logprob.at<T>(t) / temperature;
    std::vector<T> d_logits = scaled_logits<T>(a.hidden, a.weight, {}, vocabulary, temperature, t);
    for (T& value : d_logits) value = -gradient * std::exp(value - a.stats.at<T>(t, 0) - a.stats.at<T>(t, 1));
    d_logits[static_cast<size_t>(a.targets.at<int32_t>(t))] += gradient;
    for (int64_t i = 0; i < width; ++i) {
      T d_hidden = 0;
      for (int64_t v = 0; v < vocabulary; ++v) {
        d_hidden += d_logits[static_cast<size_t>(v)] * a.weight.at<T>(v, i);
        if (a.d_weight.present()) a.d_weight.at<T>(v, i) += d_logits[static_cast<size_t>(v)] * a.hidden.at<T>(t, i);
      }
      if (a.d_hidden.present()) a.d_hidden.at<T>(t, i) = d_hidden;
    }
  }
}

template void forward_reference<float>(const Forward&);
template void forward_reference<double>(const Forward&);
template void backward_reference<float>(const Backward&);
template void backward_reference<double>(const Backward&);

}  // namespace trilithon::lm_head
