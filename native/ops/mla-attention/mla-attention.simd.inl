#include "isa/attend-backward.h"
#include "isa/key-lists.h"
#include "ops/mla-attention/mla-attention.h"

KERNELS_BEGIN

using namespace mla_attention;

TRILITHON_INLINE int64_t key_width(const Sizes& s) { return s.latent_width + s.rope_width; }

// Rows that share the keys of a task: enough to pay for copying keys together, few enough for the second-level cache.
TRILITHON_INLINE int64_t rows_wanted(const Sizes& s) { return key_width(s) + 2 * s.latent_width <= 1024 ? 128 : 64; }
TRILITHON_INLINE int64_t task_rows(const Sizes& s) { return s.tokens_per_task * s.heads; }

int64_t tokens_per_task(const Sizes& s) { return at_least(rows_wanted(s) / s.heads, 1); }
int64_t segment_keys() { return key_segment; }

// Where keys are chosen, a query has few of a block's keys: larger tasks find more of them together.
int64_t keys_per_task(bool sparse) { return sparse ? 4 * key_block : key_block; }

// Room for the keys of one block and the queries of one panel.
struct Buffers {
  float* keys;
  float* queries;

  static Buffers carve(Carver& carver, const Sizes& s) {
    float* keys = carver.take(key_block * key_width(s));
    return {keys, carver.take(panel_columns * key_width(s))};
  }
};

// Rows of a span are its tokens, and within a token the heads.
TRILITHON_INLINE float* row_of(const Sizes& s, const Heads& heads, const Span& span, int64_t row) {
  return heads.data + (span.query + row / s.heads) * heads.stride + row % s.heads * heads.head_stride;
}

// A scaled query: its latent part, then its rope part, as keys have them.
TRILITHON_INLINE void load_query(const Sizes& s, const Heads& q, const Heads& q_rope, const Span& span, int64_t row, float* to) {
  scale_row(row_of(s, q, span, row), s.latent_width, set(s.scale), to);
  scale_row(row_of(s, q_rope, span, row), s.rope_width, set(s.scale), to + s.latent_width);
}

// Calls pack(begin, count) for rows 32 by 32.
template <typename Load>
TRILITHON_INLINE void pack_span(int64_t rows, int64_t width, float* buffer, float* panels, Load load_row) {
  for (int64_t begin = 0; begin < rows; begin += panel_columns) {
    const int64_t count = at_most(rows - begin, panel_columns);
    for (int64_t r = 0; r < count; ++r) load_row(begin + r, buffer + r * width);
    pack_b_panel(count, width, buffer, width, panels + begin * width);
  }
}

TRILITHON_INLINE void set_limits(const Sizes& s, const Span& span, const Rows& rows) {
  for (int64_t lane = 0; lane < rows.lanes; ++lane) {
    const int64_t seen = span.list == nullptr ? span.position + at_most(lane, rows.count - 1) / s.heads + 1 : span.count;
    rows.limits[lane] = static_cast<int32_t>(seen);
  }
}

TRILITHON_INLINE void load_key(const Sizes& s, const KeyRows& latent, const KeyRows& rope, const PageMap& pages, const Chunk& chunk,
                               int64_t position, float* to) {
  copy_row(key_row(latent, pages, chunk, position), s.latent_width, to);
  copy_row(key_row(rope, pages, chunk, position), s.rope_width, to + s.latent_width);
}

// Keys [first, first + count) of what a span sees, together. Their first latent_width columns are the values.
TRILITHON_INLINE void load_keys(const Sizes& s, const KeyRows& latent, const KeyRows& rope, const PageMap& pages, const Span& span,
                                int64_t first, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) load_key(s, latent, rope, pages, *span.chunk, span.key(first + i), to + i * key_width(s));
}

// Calls body(attention, fill) with the rows of a span in place.
template <typename Body>
TRILITHON_INLINE void with_rows(const ForwardParams& p, const Span& span, Carver& carver, Body body) {
  const Sizes& s = p.sizes;
  Attention a = Attention::carve(carver, span.tokens * s.heads, key_width(s), s.latent_width);
  const Buffers buffers = Buffers::carve(carver, s);
  set_limits(s, span, a.rows);
  pack_span(a.rows.count, key_width(s), buffers.queries, a.queries,
            [&](int64_t r, float* to) { load_query(s, p.q, p.q_rope, span, r, to); });
  a.key_stride = a.value_stride = key_width(s);
  body(a, [&](int64_t first, int64_t count, KeyRun* runs) -> int64_t {
    load_keys(s, p.latent, p.rope, p.pages, span, first, count, buffers.keys);
    runs[0] = {buffers.keys, buffers.keys, 0, count};
    return 1;
  });
}

TRILITHON_INLINE void store_rows(const ForwardParams& p, const Span& span, const Attention& a, const Partial& all) {
  finish(
      a, all, [&](int64_t r) { return row_of(p.sizes, p.out, span, r); },
      [&](int64_t r) { return p.lse == nullptr ? nullptr : p.lse + span.query * p.sizes.heads + r; });
}

int64_t partial_bytes(const Sizes& s) {
  Carver carver{nullptr};
  Partial::carve(carver, task_rows(s), s.latent_width);
  return carver.used;
}

int64_t forward_scratch(const Sizes& s) {
  Carver carver{nullptr};
  Attention::carve(carver, task_rows(s), key_width(s), s.latent_width);
  Partial::carve(carver, task_rows(s), s.latent_width);
  Partial::carve(carver, task_rows(s), s.latent_width);
  Buffers::carve(carver, s);
  return carver.used;
}

void forward(const ForwardParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  const Sizes& s = p.sizes;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(s.tokens_per_task, p.chunks, p.first_task, p.chunk_count, index);
    for_spans(p.chosen, *task.chunk, task.query, task.position, task.tokens, task.tokens, [&](const Span& span) {
      Carver carver{static_cast<char*>(scratch)};
      const Partial all = Partial::carve(carver, span.tokens * s.heads, s.latent_width);
      const Partial part = Partial::carve(carver, span.tokens * s.heads, s.latent_width);
      with_rows(p, span, carver, [&](const Attention& a, auto fill) {
        attend(a, all, part, fill);
        store_rows(p, span, a, all);
      });
    });
  }
}

TRILITHON_INLINE Partial partial_of(const ForwardParams& p, int64_t index, int64_t segment) {
  Carver carver{p.partials + (index * p.segments + segment) * p.partial_bytes};
  return Partial::carve(carver, p.sizes.heads, p.sizes.latent_width);
}

TRILITHON_INLINE Span span_of_task(const ForwardParams& p, int64_t index) {
  const Task task = find_task(p.sizes.tokens_per_task, p.chunks, p.first_task, p.chunk_count, index);
  return span_of_one(p.chosen, *task.chunk, task.query, task.position);
}

void forward_segment(const ForwardParams& p, int64_t item_begin, int64_t item_end, void* scratch) {
  for (int64_t item = item_begin; item < item_end; ++item) {
    const int64_t index = item / p.segments, segment = item % p.segments, begin = segment * key_segment;
    const Span span = span_of_task(p, index);
    const int64_t end = at_most(span.end(), begin + key_segment);
    if (begin >= end) continue;
    Carver carver{static_cast<char*>(scratch)};
    with_rows(p, span, carver, [&](const Attention& a, auto fill) { attend_segment(a, partial_of(p, index, segment), begin, end, fill); });
  }
}

void forward_combine(const ForwardParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Span span = span_of_task(p, index);
    Carver carver{static_cast<char*>(scratch)};
    const Attention a = Attention::carve(carver, p.sizes.heads, key_width(p.sizes), p.sizes.latent_width);
    set_limits(p.sizes, span, a.rows);
    const Partial all = partial_of(p, index, 0);
    for (int64_t segment = 1; segment * key_segment < span.end(); ++segment) {
      append_segment(a, all, partial_of(p, index, segment), segment * key_segment);
    }
    store_rows(p, span, a, all);
  }
}

void delta(const BackwardParams& p, int64_t query_begin, int64_t query_end) {
  const Sizes& s = p.sizes;
  for (int64_t query = query_begin; query < query_end; ++query) {
    for (int64_t head = 0; head < s.heads; ++head) {
      const float* out = p.out.data + query * p.out.stride + head * p.out.head_stride;
      const float* d_out = p.d_out.data + query * p.d_out.stride + head * p.d_out.head_stride;
      p.delta[query * s.heads + head] =
          row_sum(s.latent_width, [&](F total, int64_t i, int64_t n) { return fma(load_n(out + i, n), load_n(d_out + i, n), total); });
    }
  }
}

constexpr int64_t step_rows = 64;

// Tokens of one step of a task over keys.
TRILITHON_INLINE int64_t tokens_per_step(const Sizes& s) { return at_least(step_rows / s.heads, 1); }

// What a task over keys gathers, and the panels of its keys.
struct KeyTask {
  int64_t first, count;  // positions [first, first + count) of the document
  float* d_keys;         // [keys_per_task, key_width]
  float* d_values;       // [keys_per_task, latent_width]
  float* panels;         // of all keys, key_block by key_block
  KeyGradient step;
  float* chosen;         // [key_block, key_width]
  float* chosen_panels;  // of those
  float* chosen_d_keys;
  float* chosen_d_values;

  static KeyTask carve(Carver& carver, const Sizes& s) {
    const int64_t width = key_width(s);
    KeyTask t{};
    t.d_keys = carver.take(s.keys_per_task * width);
    t.d_values = carver.take(s.keys_per_task * s.latent_width);
    t.panels = carver.take(s.keys_per_task * width);
    t.chosen = carver.take(key_block * width);
    t.step = KeyGradient::carve(carver, tokens_per_step(s) * s.heads, width, s.latent_width);
    t.step.value_depth = width;
    t.chosen_panels = t.step.keys;
    t.chosen_d_keys = t.step.d_keys;
    t.chosen_d_values = t.step.d_values;
    return t;
  }
};

int64_t backward_scratch(const Sizes& s) {
  Carver queries{nullptr}, keys{nullptr};
  QueryGradient::carve(queries, task_rows(s), key_width(s), s.latent_width);
  Buffers::carve(queries, s);
  KeyTask::carve(keys, s);
  return at_least(queries.used, keys.used);
}

void backward_queries(const BackwardParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  const Sizes& s = p.sizes;
  const PageMap packed{nullptr, 0, 1};
  const int64_t width = key_width(s);
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(s.tokens_per_task, p.chunks, p.first_task, p.chunk_count, index);
    for_spans(p.chosen, *task.chunk, task.query, task.position, task.tokens, task.tokens, [&](const Span& span) {
      Carver carver{static_cast<char*>(scratch)};
      const QueryGradient g = QueryGradient::carve(carver, span.tokens * s.heads, width, s.latent_width);
      const Buffers buffers = Buffers::carve(carver, s);
      set_limits(s, span, g.rows);
      pack_span(g.rows.count, width, buffers.queries, g.queries, [&](int64_t r, float* to) { load_query(s, p.q, p.q_rope, span, r, to); });
      pack_span(g.rows.count, s.latent_width, buffers.queries, g.d_out,
                [&](int64_t r, float* to) { copy_row(row_of(s, p.d_out, span, r), s.latent_width, to); });
      for (int64_t lane = 0; lane < g.rows.lanes; ++lane) {
        const int64_t at = span.query * s.heads + at_most(lane, g.rows.count - 1);
        g.lse[lane] = p.lse[at];
        g.delta[lane] = p.delta[at];
      }
      for (int64_t first = 0; first < span.end(); first += key_block) {
        const int64_t count = at_most(span.end() - first, key_block);
        load_keys(s, p.latent, p.rope, packed, span, first, count, buffers.keys);
        gather_query_gradient(g, first, count, buffers.keys, width, buffers.keys, width);
      }
      for (int64_t r = 0; r < g.rows.count; ++r) {
        scale_row(g.sums + r * width, s.latent_width, set(s.scale), row_of(s, p.d_q, span, r));
        scale_row(g.sums + r * width + s.latent_width, s.rope_width, set(s.scale), row_of(s, p.d_q_rope, span, r));
      }
    });
  }
}

TRILITHON_INLINE void load_step(const BackwardParams& p, const Span& span, const KeyGradient& g) {
  const Sizes& s = p.sizes;
  for (int64_t r = 0; r < span.tokens * s.heads; ++r) {
    load_query(s, p.q, p.q_rope, span, r, g.queries + r * g.width);
    copy_row(row_of(s, p.d_out, span, r), s.latent_width, g.d_out + r * s.latent_width);
    g.lse[r] = p.lse[span.query * s.heads + r];
    g.delta[r] = p.delta[span.query * s.heads + r];
  }
}

// Tokens that see all keys up to their own: every block of the task takes its part.
TRILITHON_INLINE void gather_from_all(const BackwardParams& p, const Span& span, KeyTask& task) {
  const Sizes& s = p.sizes;
  KeyGradient& g = task.step;
  load_step(p, span, g);
  for (int64_t r = 0; r < span.tokens * s.heads; ++r) g.limits[r] = static_cast<int32_t>(span.position + r / s.heads + 1);
  for (int64_t begin = 0; begin < task.count && task.first + begin < span.end(); begin += key_block) {
    g.first = task.first + begin;
    g.count = at_most(task.count - begin, key_block);
    g.keys = g.values = task.panels + begin * g.width;
    g.d_keys = task.d_keys + begin * g.width;
    g.d_values = task.d_values + begin * s.latent_width;
    gather_key_gradient(g, span.tokens * s.heads);
  }
}

// A token with its list: those of its keys that belong to the task are brought together, and their sums go back afterwards.
TRILITHON_INLINE void gather_from_list(const BackwardParams& p, const Span& span, KeyTask& task) {
  const Sizes& s = p.sizes;
  const int64_t begin = span.first_slot(task.first), end = span.first_slot(task.first + task.count);
  if (begin == end) return;
  KeyGradient& g = task.step;
  load_step(p, span, g);
  const PageMap packed{nullptr, 0, 1};
  g.first = 0;
  g.keys = g.values = task.chosen_panels;
  g.d_keys = task.chosen_d_keys;
  g.d_values = task.chosen_d_values;
  for (int64_t slot = begin; slot < end; slot += key_block) {
    g.count = at_most(end - slot, key_block);
    for (int64_t r = 0; r < s.heads; ++r) g.limits[r] = static_cast<int32_t>(g.count);
    load_keys(s, p.latent, p.rope, packed, span, slot, g.count, task.chosen);
    pack_rows(g.count, g.width, task.chosen, g.width, g.keys);
    for (int64_t i = 0; i < g.count; ++i) {
      const int64_t key = span.list[slot + i] - task.first;
      copy_row(task.d_keys + key * g.width, g.width, g.d_keys + i * g.width);
      copy_row(task.d_values + key * s.latent_width, s.latent_width, g.d_values + i * s.latent_width);
    }
    gather_key_gradient(g, s.heads);
    for (int64_t i = 0; i < g.count; ++i) {
      const int64_t key = span.list[slot + i] - task.first;
      copy_row(g.d_keys + i * g.width, g.width, task.d_keys + key * g.width);
      copy_row(g.d_values + i * s.latent_width, s.latent_width, task.d_values + key * s.latent_width);
    }
  }
}

void backward_keys(const BackwardParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  const Sizes& s = p.sizes;
  const PageMap packed{nullptr, 0, 1};
  const int64_t width = key_width(s);
  for (int64_t index = task_begin; index < task_end; ++index) {
    const int64_t document = owner_of(p.key_tasks.first_task, p.key_tasks.documents, index);
    const int64_t row = p.key_tasks.document_starts[document], keys = p.key_tasks.document_starts[document + 1] - row;
    Carver carver{static_cast<char*>(scratch)};
    KeyTask task = KeyTask::carve(carver, s);
    task.first = (index - p.key_tasks.first_task[document]) * s.keys_per_task;
    task.count = at_most(keys - task.first, s.keys_per_task);
    fill_zero(task.d_keys, task.count * width);
    fill_zero(task.d_values, task.count * s.latent_width);
    bool have_panels = false;
    const Chunk all_keys{row, keys, 0, document, row, keys};
    for (int64_t c = p.key_tasks.document_chunks[document]; c < p.key_tasks.document_chunks[document + 1]; ++c) {
      const Chunk& chunk = p.chunks[c];
      const int64_t skipped = at_least(task.first - chunk.position, 0);
      if (skipped >= chunk.query_count) continue;
      for_spans(p.chosen, chunk, chunk.query_begin + skipped, chunk.position + skipped, chunk.query_count - skipped, tokens_per_step(s),
                [&](const Span& span) {
                  if (span.list != nullptr) return gather_from_list(p, span, task);
                  if (!have_panels) {
                    for (int64_t begin = 0; begin < task.count; begin += key_block) {
                      const int64_t count = at_most(task.count - begin, key_block);
                      for (int64_t i = 0; i < count; ++i) {
                        load_key(s, p.latent, p.rope, packed, all_keys, task.first + begin + i, task.chosen + i * width);
                      }
                      pack_rows(count, width, task.chosen, width, task.panels + begin * width);
                    }
                    have_panels = true;
                  }
                  gather_from_all(p, span, task);
                });
    }
    for (int64_t i = 0; i < task.count; ++i) {
      const float *d_key = task.d_keys + i * width, *d_value = task.d_values + i * s.latent_width;
      float* d_latent = p.d_latent + (row + task.first + i) * p.d_latent_stride;
      for_lanes(s.latent_width, [&](int64_t j, int64_t n) { store_n(d_latent + j, n, add(load_n(d_key + j, n), load_n(d_value + j, n))); });
      copy_row(d_key + s.latent_width, s.rope_width, p.d_rope + (row + task.first + i) * p.d_rope_stride);
    }
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(mla_attention, (tokens_per_task, segment_keys, keys_per_task, forward_scratch, partial_bytes, backward_scratch,
                                         forward, forward_segment, forward_combine, delta, backward_queries, backward_keys))
