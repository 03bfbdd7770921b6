#include "isa/math.h"
#include "isa/row-reduce.h"
#include "ops/moe-router/moe-router.h"

KERNELS_BEGIN

using namespace moe_router;

constexpr float excluded = -__builtin_inff();

TRILITHON_INLINE bool all_finite(const float* x, int64_t count) {
  unsigned bad = 0;
  for_lanes(count, [&](int64_t i, int64_t n) { bad |= bits(not_(lt(abs(load_n(x + i, n)), set(__builtin_inff())))); });
  return bad == 0;
}

// Place of the largest of `vectors` times sixteen values; of equal ones the first.
TRILITHON_INLINE int64_t largest(const float* values, int64_t vectors) {
  F best = load(values);
  for (int64_t v = 1; v < vectors; ++v) best = max(load(values + 16 * v), best);
  const F wanted = set(top(best));
  for (int64_t v = 0;; ++v) {
    const unsigned found = bits(eq(load(values + 16 * v), wanted));
    if (found != 0) return 16 * v + __builtin_ctz(found);
  }
}

// Writes the ids of a row: the given ones, or the top of `choice`, which is used up. Ids also go to `chosen`.
TRILITHON_INLINE void choose(const ForwardParams& p, int64_t row, float* choice, int64_t* chosen) {
  const bool replay = p.given.data != nullptr && !is_missing(p.given, row);
  const int64_t vectors = (p.experts + 15) / 16;
  for (int64_t slot = 0; slot < p.top_k; ++slot) {
    const int64_t id = replay ? get_id(p.given, row, slot) : largest(choice, vectors);
    choice[id] = excluded;
    chosen[slot] = id;
    set_id(p.ids, row, slot, id);
  }
}

// Copies a row and fills its last vector with what is never chosen.
TRILITHON_INLINE void copy_row(const float* from, int64_t count, float* to) {
  for_lanes(count, [&](int64_t i, int64_t n) { store(to + i, select(first(n), load_n(from + i, n), set(excluded))); });
}

// Sum in the order of the slots.
TRILITHON_INLINE float slot_sum(const float* values, int64_t count) {
  float total = 0;
  for (int64_t i = 0; i < count; ++i) total += values[i];
  return total;
}

TRILITHON_INLINE float slot_dot(const float* a, const float* b, int64_t count) {
  float total = 0;
  for (int64_t i = 0; i < count; ++i) total = __builtin_fmaf(a[i], b[i], total);
  return total;
}

// Softmax over the chosen experts, in the order of the slots.
TRILITHON_INLINE void chosen_softmax(const float* logits, const int64_t* chosen, int64_t count, float* weights) {
  float top_logit = logits[chosen[0]];
  for (int64_t slot = 1; slot < count; ++slot) top_logit = logits[chosen[slot]] > top_logit ? logits[chosen[slot]] : top_logit;
  for (int64_t slot = 0; slot < count; ++slot) weights[slot] = logits[chosen[slot]] - top_logit;
  for_lanes(count, [&](int64_t i, int64_t n) { store_n(weights + i, n, exp(load_n(weights + i, n))); });
  const float total = slot_sum(weights, count);
  for (int64_t slot = 0; slot < count; ++slot) weights[slot] /= total;
}

// Softmax over all experts of a row.
TRILITHON_INLINE void row_softmax(const float* logits, int64_t count, float* p) {
  F highest = set(excluded);
  for_lanes(count, [&](int64_t i, int64_t n) { highest = max(select(first(n), load_n(logits + i, n), set(excluded)), highest); });
  const F top_logit = set(top(highest));
  for_lanes(count, [&](int64_t i, int64_t n) { store_n(p + i, n, exp(sub(load_n(logits + i, n), top_logit))); });
  const F total = set(row_sum(count, [&](F sum, int64_t i, int64_t n) { return add(sum, load_n(p + i, n)); }));
  for_lanes(count, [&](int64_t i, int64_t n) { store_n(p + i, n, div(load_n(p + i, n), total)); });
}

int64_t softmax_forward(const ForwardParams& p, float* scratch, int64_t row_begin, int64_t row_end) {
  int64_t chosen[most_experts_per_token];
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* logits = p.logits + row * p.logits_stride;
    float* weights = p.weights + row * p.top_k;
    if (!all_finite(logits, p.experts)) return row;
    copy_row(logits, p.experts, scratch);
    choose(p, row, scratch, chosen);
    if (p.normalise) {
      chosen_softmax(logits, chosen, p.top_k, weights);
    } else {
      row_softmax(logits, p.experts, scratch);
      for (int64_t slot = 0; slot < p.top_k; ++slot) weights[slot] = scratch[chosen[slot]];
    }
  }
  return -1;
}

int64_t softmax_backward(const BackwardParams& p, float* scratch, int64_t row_begin, int64_t row_end) {
  int64_t chosen[most_experts_per_token];
  float weights[most_experts_per_token];
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* logits = p.logits + row * p.logits_stride;
    const float* d_weights = p.d_weights + row * p.top_k;
    float* d_logits = p.d_logits + row * p.d_logits_stride;
    if (!all_finite(logits, p.experts)) return row;
    for (int64_t slot = 0; slot < p.top_k; ++slot) chosen[slot] = get_id(p.ids, row, slot);
    if (p.normalise) {
      chosen_softmax(logits, chosen, p.top_k, weights);
    } else {
      row_softmax(logits, p.experts, scratch);
      for (int64_t slot = 0; slot < p.top_k; ++slot) weights[slot] = scratch[chosen[slot]];
    }
    const float dot = slot_dot(weights, d_weights, p.top_k);
    // An expert that was not chosen feels the others through the sum over all; renormalised, it does not count.
    for_lanes(p.experts,
              [&](int64_t i, int64_t n) { store_n(d_logits + i, n, p.normalise ? zero() : neg(mul(load_n(scratch + i, n), set(dot)))); });
    for (int64_t slot = 0; slot < p.top_k; ++slot) d_logits[chosen[slot]] = weights[slot] * (d_weights[slot] - dot);
  }
  return -1;
}

// Excludes all groups but the best. Few groups, short loops: plain code, the same everywhere.
TRILITHON_INLINE void keep_best_groups(const ForwardParams& p, float* choice, float* group_scores) {
  const int64_t size = p.experts / p.groups;
  const auto score = [&](int64_t group) {
    float best = excluded, second = excluded;
    for (int64_t e = group * size; e < (group + 1) * size; ++e) {
      if (choice[e] > best) {
        second = best;
        best = choice[e];
      } else if (choice[e] > second) {
        second = choice[e];
      }
    }
    return best + second;
  };
  for (int64_t group = 0; group < p.groups; ++group) group_scores[group] = score(group);
  // A group is kept when fewer than groups_kept others come before it.
  for (int64_t group = 0; group < p.groups; ++group) {
    int64_t before = 0;
    for (int64_t other = 0; other < p.groups; ++other) {
      const bool better = group_scores[other] > group_scores[group];
      if (better || (group_scores[other] == group_scores[group] && other < group)) ++before;
    }
    if (before < p.groups_kept) continue;
    for (int64_t e = group * size; e < (group + 1) * size; ++e) choice[e] = excluded;
  }
}

int64_t sigmoid_forward(const ForwardParams& p, float* scratch, int64_t row_begin, int64_t row_end) {
  int64_t chosen[most_experts_per_token];
  const int64_t padded = (p.experts + 15) / 16 * 16;
  float* scores = scratch;
  float* choice = scratch + padded;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* logits = p.logits + row * p.logits_stride;
    float* weights = p.weights + row * p.top_k;
    if (!all_finite(logits, p.experts)) return row;
    for_lanes(p.experts, [&](int64_t i, int64_t n) {
      const F score = sigmoid(load_n(logits + i, n));
      store_n(scores + i, n, score);
      store_n(choice + i, n, p.bias == nullptr ? score : add(score, load_n(p.bias + i, n)));
    });
    if (p.groups > 1) keep_best_groups(p, choice, scratch + 2 * padded);
    for (int64_t e = p.experts; e % 16 != 0; ++e) choice[e] = excluded;
    choose(p, row, choice, chosen);
    for (int64_t slot = 0; slot < p.top_k; ++slot) weights[slot] = scores[chosen[slot]];
    if (p.normalise) {
      const float total = slot_sum(weights, p.top_k) + 1e-20f;
      for (int64_t slot = 0; slot < p.top_k; ++slot) weights[slot] /= total;
    }
    for (int64_t slot = 0; slot < p.top_k; ++slot) weights[slot] *= p.scale;
  }
  return -1;
}

int64_t sigmoid_backward(const BackwardParams& p, float*, int64_t row_begin, int64_t row_end) {
  int64_t chosen[most_experts_per_token];
  float scores[most_experts_per_token], slopes[most_experts_per_token];
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* logits = p.logits + row * p.logits_stride;
    const float* d_weights = p.d_weights + row * p.top_k;
    float* d_logits = p.d_logits + row * p.d_logits_stride;
    if (!all_finite(logits, p.experts)) return row;
    for (int64_t slot = 0; slot < p.top_k; ++slot) {
      chosen[slot] = get_id(p.ids, row, slot);
      scores[slot] = logits[chosen[slot]];
    }
    for_lanes(p.top_k, [&](int64_t i, int64_t n) {
      const F logit = load_n(scores + i, n);
      // The slope s (1 - s) without the difference, which cancels where s is near 1.
      const F e = exp(neg(abs(logit))), sum_with_one = add(set(1.0f), e);
      store_n(slopes + i, n, div(e, mul(sum_with_one, sum_with_one)));
      store_n(scores + i, n, sigmoid(logit));
    });
    for_lanes(p.experts, [&](int64_t i, int64_t n) { store_n(d_logits + i, n, zero()); });
    const float total = slot_sum(scores, p.top_k) + 1e-20f;
    const float mean = slot_dot(scores, d_weights, p.top_k) / total;
    for (int64_t slot = 0; slot < p.top_k; ++slot) {
      const float d_score = p.normalise ? p.scale / total * (d_weights[slot] - mean) : p.scale * d_weights[slot];
      d_logits[chosen[slot]] = d_score * slopes[slot];
    }
  }
  return -1;
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(moe_router, (softmax_forward, softmax_backward, sigmoid_forward, sigmoid_backward))
