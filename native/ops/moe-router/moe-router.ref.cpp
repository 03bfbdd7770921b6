#include <cmath>
#include <limits>
#include <vector>

#include "ops/moe-router/moe-router.h"

namespace trilithon::moe_router {
namespace {

// Place of the largest value; of equal ones the first.
template <typename T>
size_t largest(const std::vector<T>& values) {
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] > values[best]) best = i;
  }
  return best;
}

template <typename T>
constexpr T excluded = -std::numeric_limits<T>::infinity();

// Writes the ids of a token: the given ones, or the top of `choice`.
template <typename T>
void choose(const Ids& given, const Ids& ids, int64_t token, std::vector<T> choice) {
  const bool replay = given.data != nullptr && !is_missing(given, token);
  for (int64_t slot = 0; slot < ids.top_k; ++slot) {
    const int64_t id = replay ? get_id(given, token, slot) : static_cast<int64_t>(largest(choice));
    set_id(ids, token, slot, id);
    choice[static_cast<size_t>(id)] = excluded<T>;
  }
}

// Softmax of a row over the chosen experts alone, or over all of them.
template <typename T>
std::vector<T> softmax(const TensorView& logits, int64_t token, const Ids& ids, bool chosen_only) {
  const int64_t experts = logits.shape[1];
  std::vector<T> result(static_cast<size_t>(experts), T(0));
  std::vector<bool> counts(static_cast<size_t>(experts), !chosen_only);
  for (int64_t slot = 0; slot < ids.top_k; ++slot) counts[static_cast<size_t>(get_id(ids, token, slot))] = true;
  T top = excluded<T>, total = 0;
  for (int64_t e = 0; e < experts; ++e) {
    if (counts[static_cast<size_t>(e)]) top = std::max(top, logits.at<T>(token, e));
  }
  for (int64_t e = 0; e < experts; ++e) {
    if (!counts[static_cast<size_t>(e)]) continue;
    result[static_cast<size_t>(e)] = std::exp(logits.at<T>(token, e) - top);
    total += result[static_cast<size_t>(e)];
  }
  for (T& value : result) value /= total;
  return result;
}

template <typename T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

// Excludes the experts of all groups but the best; a group's score is the sum of its two best choices.
template <typename T>
void keep_best_groups(std::vector<T>& choice, int64_t groups, int64_t groups_kept) {
  const size_t size = choice.size() / static_cast<size_t>(groups);
  std::vector<T> scores;
  for (int64_t g = 0; g < groups; ++g) {
    const auto begin = choice.begin() + g * static_cast<int64_t>(size);
    std::vector<T> group(begin, begin + static_cast<int64_t>(size));
    const size_t first = largest(group);
    const T best = group[first];
    group[first] = excluded<T>;
    scores.push_back(best + group[largest(group)]);
  }
  std::vector<bool> kept(static_cast<size_t>(groups), false);
  for (int64_t i = 0; i < groups_kept; ++i) {
    const size_t best = largest(scores);
    kept[best] = true;
    scores[best] = excluded<T>;
  }
  for (size_t e = 0; e < choice.size(); ++e) {
    if (!kept[e / size]) choice[e] = excluded<T>;
  }
}

}  // namespace

template <typename T>
void softmax_forward_reference(const SoftmaxForward& a) {
  const Ids given = ids_of(a.given), ids = ids_of(a.ids);
  for (int64_t t = 0; t < a.logits.shape[0]; ++t) {
    std::vector<T> choice;
    for (int64_t e = 0; e < a.logits.shape[1]; ++e) choice.push_back(a.logits.at<T>(t, e));
    choose(given, ids, t, choice);
    const std::vector<T> p = softmax<T>(a.logits, t, ids, a.renormalise);
    for (int64_t slot = 0; slot < ids.top_k; ++slot) a.weights.at<T>(t, slot) = p[static_cast<size_t>(get_id(ids, t, slot))];
  }
}

template <typename T>
void softmax_backward_reference(const SoftmaxBackward& a) {
  const Ids ids = ids_of(a.ids);
  for (int64_t t = 0; t < a.logits.shape[0]; ++t) {
    const std::vector<T> p = softmax<T>(a.logits, t, ids, a.renormalise);
    T dot = 0;
    for (int64_t slot = 0; slot < ids.top_k; ++slot) dot += p[static_cast<size_t>(get_id(ids, t, slot))] * a.d_weights.at<T>(t, slot);
    for (int64_t e = 0; e < a.logits.shape[1]; ++e) {
      T incoming = 0;
      for (int64_t slot = 0; slot < ids.top_k; ++slot) {
        if (get_id(ids, t, slot) == e) incoming = a.d_weights.at<T>(t, slot);
      }
      a.d_logits.at<T>(t, e) = p[static_cast<size_t>(e)] * (incoming - dot);
    }
  }
}

template <typename T>
void sigmoid_forward_reference(const SigmoidForward& a) {
  const Ids given = ids_of(a.given), ids = ids_of(a.ids);
  for (int64_t t = 0; t < a.logits.shape[0]; ++t) {
    std::vector<T> scores, choice;
    for (int64_t e = 0; e < a.logits.shape[1]; ++e) {
      scores.push_back(sigmoid(a.logits.at<T>(t, e)));
      choice.push_back(scores.back() + (a.bias.present() ? a.bias.at<T>(e) : T(0)));
    }
    if (a.groups > 1) keep_best_groups(choice, a.groups, a.groups_kept);
    choose(given, ids, t, choice);
    T total = T(1e-20);
    for (int64_t slot = 0; slot < ids.top_k; ++slot) total += scores[static_cast<size_t>(get_id(ids, t, slot))];
    for (int64_t slot = 0; slot < ids.top_k; ++slot)
      a.weights.at<T>(t, slot) = scores[static_cast<size_t>(get_id(ids, t, slot))] / (a.normalise ? total : T(1)) * T(a.scale);
  }
}

template <typename T>
void sigmoid_backward_reference(const SigmoidBackward& a) {
  const Ids ids = ids_of(a.ids);
  for (int64_t t = 0; t < a.logits.shape[0]; ++t) {
    for (int64_t e = 0; e < a.logits.shape[1]; ++e) a.d_logits.at<T>(t, e) = 0;
    T total = T(1e-20), dot = 0;
    for (int64_t slot = 0; slot < ids.top_k; ++slot) {
      const T score = sigmoid(a.logits.at<T>(t, get_id(ids, t, slot)));
      total += score;
      dot += a.d_weights.at<T>(t, slot) * score;
    }
    for (int64_t slot = 0; slot < ids.top_k; ++slot) {
      const T score = sigmoid(a.logits.at<T>(t, get_id(ids, t, slot))), d_weight = a.d_weights.at<T>(t, slot);
      const T d_score = a.normalise ? T(a.scale) / total * (d_weight - dot / total) : T(a.scale) * d_weight;
      a.d_logits.at<T>(t, get_id(ids, t, slot)) = d_score * (score * sigmoid(-a.logits.at<T>(t, get_id(ids, t, slot))));
    }
  }
}

#define TRILITHON_INSTANTIATE(T)                                       \
  template void softmax_forward_reference<T>(const SoftmaxForward&);   \
  template void softmax_backward_reference<T>(const SoftmaxBackward&); \
  template void sigmoid_forward_reference<T>(const SigmoidForward&);   \
  template void sigmoid_backward_reference<T>(const SigmoidBackward&);
TRILITHON_INSTANTIATE(float)
TRILITHON_INSTANTIATE(double)

}  // namespace trilithon::moe_router
