// Scores of the DSA indexer and their gradients, in the pieces that the indexer and its KL loss share.
//
//     score[t, s] = Σ_j (scale * weight[t, j]) * max(0, q[t, j] · k[s])        + 0, so that -0 is 0
//
// ORDER: a product is one fma chain over the width; a score one fma chain over the index heads j in ascending order, from 0. So
// a score depends on its query and its key alone. Gradients are fma chains in ascending order: of q over the keys, of k over
// tokens and within a token heads; of a weight, the sums of blocks of 64 keys (a tree over lanes) added in order.
#pragma once

#include "isa/attend-backward.h"
#include "isa/key-lists.h"

KERNELS_BEGIN

// Rows are tokens, and within a token index heads; a step has one block of keys.
struct IndexStep {
  int64_t heads, width;
  int64_t tokens;   // of the span in place
  float* queries;   // [tokens * heads, width]
  float* weights;   // [tokens * heads], times the scale
  float* products;  // [tokens * heads, key_block]
  float* scores;    // [tokens, key_block]
  float* slopes;    // [tokens, key_block] gradients by the scores
  float* keys;      // [key_block, width]
  float* panels;    // of those
  int32_t* limits;  // [tokens * heads] slots that a row sees

  static IndexStep carve(Carver& carver, int64_t tokens, int64_t heads, int64_t width) {
    IndexStep step{};
    const int64_t rows = tokens * heads;
    step.heads = heads;
    step.width = width;
    step.queries = carver.take(rows * width);
    step.weights = carver.take(rows);
    step.products = carver.take(rows * key_block);
    step.scores = carver.take(tokens * key_block);
    step.slopes = carver.take(tokens * key_block);
    step.keys = carver.take(key_block * width);
    step.panels = carver.take(key_block * width);
    step.limits = carver.take<int32_t>(rows);
    return step;
  }

  TRILITHON_INLINE_MEMBER int64_t rows() const { return tokens * heads; }
};

struct IndexQueries {
  Heads q;
  const float* weights;
  int64_t weight_stride;
  float scale;
};

TRILITHON_INLINE void load_index_queries(IndexStep& step, const IndexQueries& from, const Span& span) {
  step.tokens = span.tokens;
  for (int64_t t = 0; t < span.tokens; ++t) {
    const float* q = from.q.data + (span.query + t) * from.q.stride;
    for (int64_t j = 0; j < step.heads; ++j) {
      const int64_t row = t * step.heads + j;
      copy_row(q + j * from.q.head_stride, step.width, step.queries + row * step.width);
      step.limits[row] = static_cast<int32_t>(span.seen(t));
    }
    scale_row(from.weights + (span.query + t) * from.weight_stride, step.heads, set(from.scale), step.weights + t * step.heads);
  }
}

// The keys in slots [first, first + count) of a span: rows, and panels of them.
TRILITHON_INLINE void load_index_keys(const IndexStep& step, const KeyRows& k, const PageMap& pages, const Span& span, int64_t first,
                                      int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    copy_row(key_row(k, pages, *span.chunk, span.key(first + i)), step.width, step.keys + i * step.width);
  }
  pack_rows(count, step.width, step.keys, step.width, step.panels);
}

// Products and scores of all rows with `count` keys in `panels`. Lanes up to a multiple of sixteen are computed.
TRILITHON_INLINE void index_scores(const IndexStep& step, const float* panels, int64_t count) {
  const int64_t lanes = round_up(count, 16);
  deep_product(step.rows(), lanes, step.width, ARows{step.queries, step.width}, BPanels{panels, step.width}, step.products, key_block);
  for (int64_t t = 0; t < step.tokens; ++t) {
    for (int64_t lane = 0; lane < lanes; lane += 16) {
      F score = zero();
      for (int64_t j = 0; j < step.heads; ++j) {
        const int64_t row = t * step.heads + j;
        score = fma(max(zero(), load(step.products + row * key_block + lane)), set(step.weights[row]), score);
      }
      store(step.scores + t * key_block + lane, add(score, zero()));
    }
  }
}

// The sum of f(lane, n) over the first `count` lanes of a block: four vectors as (0 + 1) + (2 + 3), then the tree over lanes.
template <typename Part>
TRILITHON_INLINE float block_sum(int64_t count, Part part) {
  F parts[4] = {zero(), zero(), zero(), zero()};
  for (int64_t lane = 0; lane < count; lane += 16) parts[lane / 16] = part(lane, at_most(count - lane, 16));
  return sum(add(add(parts[0], parts[1]), add(parts[2], parts[3])));
}

// Adds Σ slope * max(0, product) over the first `seen` keys of the block to the unscaled weights' gradients of token t.
TRILITHON_INLINE void add_weight_gradients(const IndexStep& step, int64_t t, int64_t seen, float* d_weights) {
  for (int64_t j = 0; j < step.heads; ++j) {
    const float* products = step.products + (t * step.heads + j) * key_block;
    const float* slopes = step.slopes + t * key_block;
    d_weights[j] +=
        block_sum(seen, [&](int64_t lane, int64_t n) { return mul(load_n(slopes + lane, n), max(zero(), load_n(products + lane, n))); });
  }
}

// Turns products into gradients by the products: slope * weight where the product is above 0.
TRILITHON_INLINE void product_gradients(const IndexStep& step, int64_t count) {
  for (int64_t row = 0; row < step.rows(); ++row) {
    const F weight = set(step.weights[row]);
    for (int64_t lane = 0; lane < count; lane += 16) {
      float* product = step.products + row * key_block + lane;
      const F gradient = mul(load(step.slopes + row / step.heads * key_block + lane), weight);
      store(product, select(gt(load(product), zero()), gradient, zero()));
    }
  }
}

// Gradients of the queries of a span, block by block. `slopes` of the span are in place.
TRILITHON_INLINE void gather_index_queries(const IndexStep& step, const Span& span, int64_t first, int64_t count, float* d_queries,
                                           float* d_weights) {
  for (int64_t t = 0; t < step.tokens; ++t) {
    const int64_t seen = clamp(span.seen(t) - first, 0, count);
    if (seen > 0) add_weight_gradients(step, t, seen, d_weights + t * step.heads);
  }
  product_gradients(step, count);
  const BRows keys{step.keys, step.width};
  if (span.seen(0) >= first + count) {
    block_product(step.rows(), step.width, count, ARows{step.products, key_block}, keys, d_queries, step.width, Start::resume);
    return;
  }
  for (int64_t t = 0; t < step.tokens; ++t) {
    const int64_t seen = clamp(span.seen(t) - first, 0, count), row = t * step.heads;
    if (seen > 0) {
      block_product(step.heads, step.width, seen, ARows{step.products + row * key_block, key_block}, keys, d_queries + row * step.width,
                    step.width, Start::resume);
    }
  }
}

// Gradients of keys in slots [first, first + count) from the rows in place.
TRILITHON_INLINE void gather_index_keys(const IndexStep& step, int64_t first, int64_t count, float* d_keys) {
  product_gradients(step, count);
  add_seeing(step.limits, step.rows(), first, count, step.products, step.queries, step.width, d_keys);
}

// A task over keys: sums for up to `room` keys of a document, block by block.
struct IndexKeyTask {
  int64_t first, count;  // positions [first, first + count)
  int64_t row;           // of its first key
  float* d_keys;         // [room, width]
  float* panels;         // of all keys, key_block by key_block
  float* chosen;         // [key_block, width] sums of the listed keys of one token

  static IndexKeyTask carve(Carver& carver, int64_t room, int64_t width) {
    IndexKeyTask task{};
    task.d_keys = carver.take(room * width);
    task.panels = carver.take(room * width);
    task.chosen = carver.take(key_block * width);
    return task;
  }
};

// Gradients of the keys of a task from one span. fill_slopes(first, count): slopes of slots [first, first + count), called after
// their scores are in place.
template <typename FillSlopes>
TRILITHON_INLINE void gather_index_task(IndexStep& step, const IndexKeyTask& task, const KeyRows& k, const PageMap& pages, const Span& span,
                                        FillSlopes fill_slopes) {
  if (span.list == nullptr) {
    for (int64_t begin = 0; begin < task.count && task.first + begin < span.end(); begin += key_block) {
      const int64_t count = at_most(task.count - begin, key_block);
      index_scores(step, task.panels + begin * step.width, count);
      fill_slopes(task.first + begin, count);
      gather_index_keys(step, task.first + begin, count, task.d_keys + begin * step.width);
    }
    return;
  }
  // Those of its listed keys that belong to the task are brought together, and their sums go back afterwards.
  const int64_t end = span.first_slot(task.first + task.count);
  for (int64_t slot = span.first_slot(task.first); slot < end; slot += key_block) {
    const int64_t count = at_most(end - slot, key_block);
    load_index_keys(step, k, pages, span, slot, count);
    index_scores(step, step.panels, count);
    fill_slopes(slot, count);
    for (int64_t i = 0; i < count; ++i) {
      copy_row(task.d_keys + (span.list[slot + i] - task.first) * step.width, step.width, task.chosen + i * step.width);
    }
    gather_index_keys(step, slot, count, task.chosen);
    for (int64_t i = 0; i < count; ++i) {
      copy_row(task.chosen + i * step.width, step.width, task.d_keys + (span.list[slot + i] - task.first) * step.width);
    }
  }
}

// Sets up the task over keys with number `index` and calls body(span) for every span of queries that may see some of its keys.
template <typename Body>
TRILITHON_INLINE void for_key_task(const IndexStep& step, IndexKeyTask& task, const KeyTasks& tasks, int64_t index, int64_t keys_per_task,
                                   const KeyRows& k, const Chunk* chunks, const ChosenRows& chosen, int64_t tokens_per_step, Body body) {
  const int64_t document = owner_of(tasks.first_task, tasks.documents, index);
  const int64_t row = tasks.document_starts[document], keys = tasks.document_starts[document + 1] - row;
  task.first = (index - tasks.first_task[document]) * keys_per_task;
  task.count = at_most(keys - task.first, keys_per_task);
  task.row = row + task.first;
  fill_zero(task.d_keys, task.count * step.width);
  for (int64_t begin = 0; begin < task.count; begin += key_block) {
    const int64_t count = at_most(task.count - begin, key_block);
    pack_rows(count, step.width, k.data + (task.row + begin) * k.row_stride, k.row_stride, task.panels + begin * step.width);
  }
  for (int64_t c = tasks.document_chunks[document]; c < tasks.document_chunks[document + 1]; ++c) {
    const Chunk& chunk = chunks[c];
    const int64_t skipped = at_least(task.first - chunk.position, 0);
    if (skipped >= chunk.query_count) continue;
    for_spans(chosen, chunk, chunk.query_begin + skipped, chunk.position + skipped, chunk.query_count - skipped, tokens_per_step, body);
  }
}

TRILITHON_INLINE void store_key_task(const IndexStep& step, const IndexKeyTask& task, float* d_k, int64_t stride) {
  for (int64_t i = 0; i < task.count; ++i) copy_row(task.d_keys + i * step.width, step.width, d_k + (task.row + i) * stride);
}

KERNELS_END
