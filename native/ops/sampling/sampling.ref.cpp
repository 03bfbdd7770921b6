#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/sampling/sampling.h"

namespace trilithon::sampling {
namespace {

// Writes the token of a row and its log-probability; false when the logits cannot be chosen from.
template <typename T>
bool choose_row(const std::vector<T>& logits, const RowRules& rules, T& logprob, int32_t& token) {
  const size_t count = logits.size();
  const T temperature = rules.greedy() ? T(1) : T(rules.temperature);
  std::vector<T> z(count), weights(count);
  T top = -std::numeric_limits<T>::infinity(), sum = 0;
  size_t best = 0;
  for (size_t i = 0; i < count; ++i) {
    z[i] = logits[i] / temperature;
    if (std::isnan(z[i])) return false;
    if (z[i] > top) {
      top = z[i];
      best = i;
    }
  }
  if (!std::isfinite(top)) return false;
  for (size_t i = 0; i < count; ++i) {
    weights[i] = std::exp(z[i] - top);
    sum += weights[i];
  }

  size_t chosen = best;
  if (!rules.greedy()) {
    // Tokens by descending logit, of equal ones the lower first; then each rule cuts the list.
    std::vector<size_t> kept;
    for (size_t i = 0; i < count; ++i) {
      if (static_cast<double>(weights[i]) >= rules.min_p) kept.push_back(i);
    }
    std::stable_sort(kept.begin(), kept.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
    if (rules.top_k > 0) kept.resize(std::min(kept.size(), static_cast<size_t>(rules.top_k)));
    if (rules.top_p < 1) {
      double total = 0, reached = 0;
      for (const size_t i : kept) total += static_cast<double>(weights[i]);
      size_t length = 0;
      while (length < kept.size() && reached < rules.top_p * total) reached += static_cast<double>(weights[kept[length++]]);
      kept.resize(length);
    }
    std::sort(kept.begin(), kept.end());
    double total = 0, reached = 0;
    for (const size_t i : kept) total += static_cast<double>(weights[i]);
    for (const size_t i : kept) {
      if (weights[i] == 0) continue;
      chosen = i;
      reached += static_cast<double>(weights[i]);
      if (reached > rules.uniform * total) break;
    }
  }
  token = static_cast<int32_t>(chosen);
  logprob = z[chosen] - top - std::log(sum);
  return true;
}

}  // namespace

template <typename T>
int64_t from_logits_reference(const FromLogits& a) {
  const int64_t vocabulary = a.logits.shape[1];
  for (int64_t row = 0; row < a.logits.shape[0]; ++row) {
    std::vector<T> logits;
    for (int64_t v = 0; v < vocabulary; ++v) logits.push_back(a.logits.at<T>(row, v));
    if (!choose_row(logits, rules_of(a.rules, row, vocabulary), a.logprob.at<T>(row), a.tokens.at<int32_t>(row))) return row;
  }
  return -1;
}

template <typename T>
int64_t from_hidden_reference(const FromHidden& a) {
  const int64_t vocabulary = a.weight.present() ? a.weight.shape[0] : a.vocabulary;
  for (int64_t row = 0; row < a.hidden.shape[0]; ++row) {
    std::vector<T> logits;
    for (int64_t v = 0; v < vocabulary; ++v) {
      T logit = 0;
      for (int64_t i = 0; i < a.hidden.shape[1]; ++i)
        logit += a.hidden.at<T>(row, i) * lm_head::weight_element<T>(a.weight, a.packed, v, i);
      logits.push_back(logit);
    }
    if (!choose_row(logits, rules_of(a.rules, row, vocabulary), a.logprob.at<T>(row), a.tokens.at<int32_t>(row))) return row;
  }
  return -1;
}

template int64_t from_logits_reference<float>(const FromLogits&);
template int64_t from_logits_reference<double>(const FromLogits&);
template int64_t from_hidden_reference<float>(const FromHidden&);
template int64_t from_hidden_reference<double>(const FromHidden&);

}  // namespace trilithon::sampling
