#include "isa/index-scores.h"
#include "ops/indexer-kl/indexer-kl.h"

KERNELS_BEGIN

using namespace indexer_kl;

constexpr PageMap packed{nullptr, 0, 1};

// Rows of attention heads that share the keys of a block.
constexpr int64_t rows_wanted = 96;

int64_t tokens_per_task(const Sizes& s) { return at_least(rows_wanted / at_least(s.heads, s.index_heads), 1); }
int64_t keys_per_task(bool sparse) { return sparse ? 4 * key_block : key_block; }

// The attention that a span pays to one block of keys, not yet normalised. Rows are tokens, and within a token heads.
struct TargetStep {
  int64_t heads, latent_width, width;
  int64_t tokens;
  float* queries;   // [tokens * heads, width] scaled
  float* lse;       // [tokens * heads]
  float* products;  // [tokens * heads, key_block]
  float* weights;   // [tokens, key_block] sum over heads of e^(score - lse)
  float* keys;      // [key_block, width]
  float* panels;    // of those
  int64_t loaded;   // first slot of the panels where they hold keys by position, else -1

  static TargetStep carve(Carver& carver, const Sizes& s, int64_t tokens) {
    TargetStep step{};
    const int64_t rows = tokens * s.heads;
    step.heads = s.heads;
    step.latent_width = s.latent_width;
    step.width = s.latent_width + s.rope_width;
    step.queries = carver.take(rows * step.width);
    step.lse = carver.take(rows);
    step.products = carver.take(rows * key_block);
    step.weights = carver.take(tokens * key_block);
    step.keys = carver.take(key_block * step.width);
    step.panels = carver.take(key_block * step.width);
    step.loaded = -1;
    return step;
  }
};

TRILITHON_INLINE void load_target_queries(TargetStep& step, const Params& p, const Span& span) {
  step.tokens = span.tokens;
  const F scale = set(p.sizes.scale);
  for (int64_t row = 0; row < span.tokens * step.heads; ++row) {
    const int64_t query = span.query + row / step.heads, head = row % step.heads;
    float* to = step.queries + row * step.width;
    scale_row(p.q.data + query * p.q.stride + head * p.q.head_stride, step.latent_width, scale, to);
    scale_row(p.q_rope.data + query * p.q_rope.stride + head * p.q_rope.head_stride, step.width - step.latent_width, scale,
              to + step.latent_width);
    step.lse[row] = p.lse[query * step.heads + head];
  }
}

// Weights of slots [first, first + count) of a span.
TRILITHON_INLINE void target_weights(TargetStep& step, const Params& p, const Span& span, int64_t first, int64_t count) {
  if (span.list != nullptr || step.loaded != first) {
    for (int64_t i = 0; i < count; ++i) {
      float* to = step.keys + i * step.width;
      copy_row(key_row(p.latent, packed, *span.chunk, span.key(first + i)), step.latent_width, to);
      copy_row(key_row(p.rope, packed, *span.chunk, span.key(first + i)), step.width - step.latent_width, to + step.latent_width);
    }
    pack_rows(count, step.width, step.keys, step.width, step.panels);
    // A block that ends with the keys of this span may be longer for another.
    step.loaded = span.list == nullptr && count == key_block ? first : -1;
  }
  const int64_t lanes = round_up(count, 16);
  deep_product(step.tokens * step.heads, lanes, step.width, ARows{step.queries, step.width}, BPanels{step.panels, step.width},
               step.products, key_block);
  for (int64_t t = 0; t < step.tokens; ++t) {
    for (int64_t lane = 0; lane < lanes; lane += 16) {
      F total = zero();
      for (int64_t head = 0; head < step.heads; ++head) {
        const int64_t row = t * step.heads + head;
        total = add(total, exp(sub(load(step.products + row * key_block + lane), set(step.lse[row]))));
      }
      store(step.weights + t * key_block + lane, total);
    }
  }
}

TRILITHON_INLINE IndexQueries index_queries(const Params& p) {
  return {p.index_q, p.index_weights, p.index_weight_stride, p.sizes.index_scale};
}

TRILITHON_INLINE float first_lane(F v) {
  float lanes_of[16];
  store(lanes_of, v);
  return lanes_of[0];
}

// Sums of one query over the blocks of its keys, in order.
struct KlSums {
  float top, total;    // of e^(index score - top)
  float target;        // Σ weight
  float target_cross;  // Σ weight (log weight - index score)
};

TRILITHON_INLINE void add_block(KlSums& sums, const float* scores, const float* weights, int64_t seen, bool fresh) {
  F tops = set(-__builtin_inff());
  for (int64_t lane = 0; lane < seen; lane += 16) {
    const M there = trilithon::TRILITHON_ISA_NS::first(seen - lane);
    tops = max(tops, select(there, load(scores + lane), set(-__builtin_inff())));
  }
  const float block_top = top(tops);
  const float highest = fresh || !(sums.top > block_top) ? block_top : sums.top;
  const float added = block_sum(seen, [&](int64_t lane, int64_t n) {
    return select(trilithon::TRILITHON_ISA_NS::first(n), exp(sub(load_n(scores + lane, n), set(highest))), zero());
  });
  const float target = block_sum(seen, [&](int64_t lane, int64_t n) { return load_n(weights + lane, n); });
  const float cross = block_sum(seen, [&](int64_t lane, int64_t n) {
    const F weight = load_n(weights + lane, n);
    return select(eq(weight, zero()), zero(), mul(weight, sub(log(weight), load_n(scores + lane, n))));
  });
  if (fresh) {
    sums = {highest, added, target, cross};
    return;
  }
  sums.total = __builtin_fmaf(sums.total, first_lane(exp(set(sums.top - highest))), added);
  sums.top = highest;
  sums.target += target;
  sums.target_cross += cross;
}

int64_t scratch(const Sizes& s) {
  Carver carver{nullptr};
  IndexStep::carve(carver, s.tokens_per_task, s.index_heads, s.index_width);
  TargetStep::carve(carver, s, s.tokens_per_task);
  carver.take<KlSums>(s.tokens_per_task);
  carver.take(s.tokens_per_task * s.index_heads * s.index_width);
  carver.take(s.tokens_per_task * s.index_heads);
  IndexKeyTask::carve(carver, s.keys_per_task, s.index_width);
  return carver.used;
}

void forward(const Params& p, int64_t task_begin, int64_t task_end, void* memory) {
  const Sizes& s = p.sizes;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(s.tokens_per_task, p.chunks, p.first_task, p.chunk_count, index);
    for_spans(p.chosen, *task.chunk, task.query, task.position, task.tokens, task.tokens, [&](const Span& span) {
      Carver carver{static_cast<char*>(memory)};
      IndexStep step = IndexStep::carve(carver, span.tokens, s.index_heads, s.index_width);
      TargetStep target = TargetStep::carve(carver, s, span.tokens);
      KlSums* sums = carver.take<KlSums>(span.tokens);
      load_index_queries(step, index_queries(p), span);
      load_target_queries(target, p, span);
      for (int64_t first = 0; first < span.end(); first += key_block) {
        const int64_t count = at_most(span.end() - first, key_block);
        load_index_keys(step, p.index_k, packed, span, first, count);
        index_scores(step, step.panels, count);
        target_weights(target, p, span, first, count);
        for (int64_t t = 0; t < span.tokens; ++t) {
          const int64_t seen = clamp(span.seen(t) - first, 0, count);
          if (seen > 0) add_block(sums[t], step.scores + t * key_block, target.weights + t * key_block, seen, first == 0);
        }
      }
      for (int64_t t = 0; t < span.tokens; ++t) {
        const KlSums& q = sums[t];
        const float index_lse = q.top + first_lane(log(set(q.total)));
        p.index_lse[span.query + t] = index_lse;
        p.target_sum[span.query + t] = q.target;
        // Attention that pays nothing to any of these keys says nothing about them.
        p.kl[span.query + t] = q.target == 0 ? 0 : q.target_cross / q.target - first_lane(log(set(q.target))) + index_lse;
      }
    });
  }
}

// Gradients by the index scores in slots [first, first + count) of a span: d_kl (softmax - target); 0 where a token sees no key.
TRILITHON_INLINE void fill_slopes(const Params& p, const IndexStep& step, TargetStep& target, const Span& span, int64_t first,
                                  int64_t count) {
  target_weights(target, p, span, first, count);
  for (int64_t t = 0; t < span.tokens; ++t) {
    const int64_t query = span.query + t, seen = clamp(span.seen(t) - first, 0, count);
    float* slopes = step.slopes + t * key_block;
    fill_zero(slopes, key_block);
    if (p.target_sum[query] == 0) continue;
    const F d_kl = set(p.d_kl[query]), lse = set(p.index_lse[query]), sum_of_target = set(p.target_sum[query]);
    for_lanes(seen, [&](int64_t lane, int64_t n) {
      const F predicted = exp(sub(load_n(step.scores + t * key_block + lane, n), lse));
      store_n(slopes + lane, n, mul(d_kl, sub(predicted, div(load_n(target.weights + t * key_block + lane, n), sum_of_target))));
    });
  }
}

void backward_queries(const Params& p, int64_t task_begin, int64_t task_end, void* memory) {
  const Sizes& s = p.sizes;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(s.tokens_per_task, p.chunks, p.first_task, p.chunk_count, index);
    for_spans(p.chosen, *task.chunk, task.query, task.position, task.tokens, task.tokens, [&](const Span& span) {
      Carver carver{static_cast<char*>(memory)};
      IndexStep step = IndexStep::carve(carver, span.tokens, s.index_heads, s.index_width);
      TargetStep target = TargetStep::carve(carver, s, span.tokens);
      const int64_t rows = span.tokens * s.index_heads;
      float* d_queries = carver.take(rows * s.index_width);
      float* d_weights = carver.take(rows);
      fill_zero(d_queries, rows * s.index_width);
      fill_zero(d_weights, rows);
      load_index_queries(step, index_queries(p), span);
      load_target_queries(target, p, span);
      for (int64_t first = 0; first < span.end(); first += key_block) {
        const int64_t count = at_most(span.end() - first, key_block);
        load_index_keys(step, p.index_k, packed, span, first, count);
        index_scores(step, step.panels, count);
        fill_slopes(p, step, target, span, first, count);
        gather_index_queries(step, span, first, count, d_queries, d_weights);
      }
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t query = span.query + row / s.index_heads, head = row % s.index_heads;
        copy_row(d_queries + row * s.index_width, s.index_width,
                 p.d_index_q.data + query * p.d_index_q.stride + head * p.d_index_q.head_stride);
        p.d_index_weights[query * p.d_index_weight_stride + head] = d_weights[row] * s.index_scale;
      }
    });
  }
}

void backward_keys(const Params& p, int64_t task_begin, int64_t task_end, void* memory) {
  const Sizes& s = p.sizes;
  for (int64_t index = task_begin; index < task_end; ++index) {
    Carver carver{static_cast<char*>(memory)};
    IndexStep step = IndexStep::carve(carver, s.tokens_per_task, s.index_heads, s.index_width);
    TargetStep target = TargetStep::carve(carver, s, s.tokens_per_task);
    IndexKeyTask task = IndexKeyTask::carve(carver, s.keys_per_task, s.index_width);
    for_key_task(step, task, p.key_tasks, index, s.keys_per_task, p.index_k, p.chunks, p.chosen, s.tokens_per_task, [&](const Span& span) {
      if (span.first_slot(task.first) == span.first_slot(task.first + task.count)) return;
      load_index_queries(step, index_queries(p), span);
      load_target_queries(target, p, span);
      gather_index_task(step, task, p.index_k, packed, span,
                        [&](int64_t first, int64_t count) { fill_slopes(p, step, target, span, first, count); });
    });
    store_key_task(step, task, p.d_index_k, p.d_index_k_stride);
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(indexer_kl, (tokens_per_task, keys_per_task, scratch, forward, backward_queries, backward_keys))
