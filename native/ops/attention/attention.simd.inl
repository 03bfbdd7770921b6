#include "isa/attend-backward.h"
#include "ops/attention/attention.h"

KERNELS_BEGIN

using namespace attention;

// Rows that share the keys of a task: enough to pay for copying keys together, few enough for the second-level cache.
TRILITHON_INLINE int64_t rows_wanted(const Sizes& s) { return s.width + 2 * s.value_width <= 1024 ? 128 : 64; }

// From so many rows on, keys are copied together before they are used; fewer rows read them where they lie.
constexpr int64_t rows_worth_copying = 32;

TRILITHON_INLINE int64_t group_of(const Sizes& s) { return s.heads / s.kv_heads; }
TRILITHON_INLINE int64_t task_rows(const Sizes& s) { return s.tokens_per_task * group_of(s); }

int64_t tokens_per_task(const Sizes& s) { return at_least(rows_wanted(s) / group_of(s), 1); }
int64_t segment_keys() { return key_segment; }
int64_t keys_per_task() { return key_block; }

// Room for keys of one block and for queries of one panel.
struct Buffers {
  float* keys;
  float* values;
  float* queries;

  static Buffers carve(Carver& carver, const Sizes& s) {
    float* keys = carver.take(key_block * s.width);
    float* values = carver.take(key_block * s.value_width);
    return {keys, values, carver.take(panel_columns * at_least(s.width, s.value_width))};
  }
};

int64_t partial_bytes(const Sizes& s) {
  Carver carver{nullptr};
  Partial::carve(carver, task_rows(s), s.value_width);
  return carver.used;
}

int64_t forward_scratch(const Sizes& s) {
  Carver carver{nullptr};
  Attention::carve(carver, task_rows(s), s.width, s.value_width);
  Partial::carve(carver, task_rows(s), s.value_width);
  Partial::carve(carver, task_rows(s), s.value_width);
  Buffers::carve(carver, s);
  return carver.used;
}

// The queries of one task: `tokens` of them from row `query`, of the heads that share key head `head`.
struct Task {
  const Chunk* chunk;
  int64_t head, query, position, tokens;
};

// Tasks of a chunk: key head by key head, and the queries that see most keys first, so that the longest work starts first.
TRILITHON_INLINE Task find_task(const Sizes& s, const Chunk* chunks, const int64_t* first_task, int64_t chunk_count, int64_t task) {
  const int64_t owner = owner_of(first_task, chunk_count, task);
  const Chunk& chunk = chunks[owner];
  const int64_t blocks = (chunk.query_count + s.tokens_per_task - 1) / s.tokens_per_task, local = task - first_task[owner];
  const int64_t begin = (blocks - 1 - local % blocks) * s.tokens_per_task;
  return {&chunk, local / blocks, chunk.query_begin + begin, chunk.position + begin, at_most(chunk.query_count - begin, s.tokens_per_task)};
}

// Rows of a task are its tokens, and within a token the heads of the group.
TRILITHON_INLINE const float* row_of(const Sizes& s, const Heads& heads, const Task& task, int64_t row) {
  const int64_t group = group_of(s);
  return heads.data + (task.query + row / group) * heads.stride + (task.head * group + row % group) * heads.head_stride;
}
TRILITHON_INLINE int64_t scalar_of(const Sizes& s, const Task& task, int64_t row) {
  const int64_t group = group_of(s);
  return (task.query + row / group) * s.heads + task.head * group + row % group;
}

TRILITHON_INLINE void pack_heads(const Sizes& s, const Heads& heads, const Task& task, int64_t width, float factor, float* buffer,
                                 float* panels) {
  const int64_t rows = task.tokens * group_of(s);
  for (int64_t begin = 0; begin < rows; begin += panel_columns) {
    const int64_t count = at_most(rows - begin, panel_columns);
    for (int64_t r = 0; r < count; ++r) scale_row(row_of(s, heads, task, begin + r), width, set(factor), buffer + r * width);
    pack_b_panel(count, width, buffer, width, panels + begin * width);
  }
}

TRILITHON_INLINE void set_limits(const Sizes& s, const Task& task, const Rows& rows) {
  const int64_t group = group_of(s);
  for (int64_t lane = 0; lane < rows.lanes; ++lane) {
    rows.limits[lane] = static_cast<int32_t>(task.position + at_most(lane, rows.count - 1) / group + 1);
  }
}

TRILITHON_INLINE KeyRows head_rows(const PagedHeads& heads, int64_t head) {
  return {heads.data + head * heads.head_stride, heads.row_stride, heads.page_stride};
}

// Calls attend_part(attention, fill) with the rows of a task in place.
template <typename Body>
TRILITHON_INLINE void with_rows(const ForwardParams& p, const Task& task, Carver& carver, Body body) {
  const Sizes& s = p.sizes;
  Attention a = Attention::carve(carver, task.tokens * group_of(s), s.width, s.value_width);
  const Buffers buffers = Buffers::carve(carver, s);
  set_limits(s, task, a.rows);
  a.by_keys = a.rows.count <= key_lane_rows;
  if (a.by_keys) {
    a.near = buffers.queries;
    for (int64_t r = 0; r < a.rows.count; ++r) scale_row(row_of(s, p.q, task, r), s.width, set(s.scale), a.queries + r * s.width);
  } else {
    pack_heads(s, p.q, task, s.width, s.scale, buffers.queries, a.queries);
  }
  const KeyRows keys = head_rows(p.k, task.head), values = head_rows(p.v, task.head);
  const bool copied = a.rows.count >= rows_worth_copying;
  a.key_stride = copied ? s.width : keys.row_stride;
  a.value_stride = copied ? s.value_width : values.row_stride;
  body(a, [&](int64_t first, int64_t count, KeyRun* runs) -> int64_t {
    int64_t used = 0;
    for (int64_t i = 0; i < count;) {
      const int64_t run = key_run(p.pages, first + i, count - i);
      const float* key = key_row(keys, p.pages, *task.chunk, first + i);
      const float* value = key_row(values, p.pages, *task.chunk, first + i);
      if (copied) {
        for (int64_t j = 0; j < run; ++j) {
          copy_row(key + j * keys.row_stride, s.width, buffers.keys + (i + j) * s.width);
          copy_row(value + j * values.row_stride, s.value_width, buffers.values + (i + j) * s.value_width);
        }
      } else {
        runs[used++] = {key, value, i, run};
      }
      i += run;
    }
    if (!copied) return used;
    runs[0] = {buffers.keys, buffers.values, 0, count};
    return 1;
  });
}

TRILITHON_INLINE void store_rows(const ForwardParams& p, const Task& task, const Attention& a, const Partial& all) {
  finish(
      a, all, [&](int64_t r) { return const_cast<float*>(row_of(p.sizes, p.out, task, r)); },
      [&](int64_t r) { return p.lse == nullptr ? nullptr : p.lse + scalar_of(p.sizes, task, r); });
}

void forward(const ForwardParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(p.sizes, p.chunks, p.first_task, p.chunk_count, index);
    Carver carver{static_cast<char*>(scratch)};
    const int64_t rows = task.tokens * group_of(p.sizes);
    const Partial all = Partial::carve(carver, rows, p.sizes.value_width), part = Partial::carve(carver, rows, p.sizes.value_width);
    with_rows(p, task, carver, [&](const Attention& a, auto fill) {
      attend(a, all, part, fill);
      store_rows(p, task, a, all);
    });
  }
}

TRILITHON_INLINE Partial partial_of(const ForwardParams& p, const Task& task, int64_t index, int64_t segment) {
  Carver carver{p.partials + (index * p.segments + segment) * p.partial_bytes};
  return Partial::carve(carver, task.tokens * group_of(p.sizes), p.sizes.value_width);
}

void forward_segment(const ForwardParams& p, int64_t item_begin, int64_t item_end, void* scratch) {
  for (int64_t item = item_begin; item < item_end; ++item) {
    const int64_t index = item / p.segments, segment = item % p.segments, begin = segment * key_segment;
    const Task task = find_task(p.sizes, p.chunks, p.first_task, p.chunk_count, index);
    const int64_t end = at_most(task.position + task.tokens, begin + key_segment);
    if (begin >= end) continue;
    Carver carver{static_cast<char*>(scratch)};
    with_rows(p, task, carver,
              [&](const Attention& a, auto fill) { attend_segment(a, partial_of(p, task, index, segment), begin, end, fill); });
  }
}

void forward_combine(const ForwardParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(p.sizes, p.chunks, p.first_task, p.chunk_count, index);
    Carver carver{static_cast<char*>(scratch)};
    const Attention a = Attention::carve(carver, task.tokens * group_of(p.sizes), p.sizes.width, p.sizes.value_width);
    set_limits(p.sizes, task, a.rows);
    const Partial all = partial_of(p, task, index, 0);
    for (int64_t segment = 1; segment * key_segment < task.position + task.tokens; ++segment) {
      append_segment(a, all, partial_of(p, task, index, segment), segment * key_segment);
    }
    store_rows(p, task, a, all);
  }
}

void delta(const BackwardParams& p, int64_t query_begin, int64_t query_end) {
  const Sizes& s = p.sizes;
  for (int64_t query = query_begin; query < query_end; ++query) {
    for (int64_t head = 0; head < s.heads; ++head) {
      const float* out = p.out.data + query * p.out.stride + head * p.out.head_stride;
      const float* d_out = p.d_out.data + query * p.d_out.stride + head * p.d_out.head_stride;
      p.delta[query * s.heads + head] =
          row_sum(s.value_width, [&](F total, int64_t i, int64_t n) { return fma(load_n(out + i, n), load_n(d_out + i, n), total); });
    }
  }
}

constexpr int64_t key_task_rows = 64;

// Query rows of one step of a task over keys: whole tokens.
TRILITHON_INLINE int64_t tokens_per_step(const Sizes& s) { return at_least(key_task_rows / group_of(s), 1); }

int64_t backward_scratch(const Sizes& s) {
  Carver queries{nullptr}, keys{nullptr};
  QueryGradient::carve(queries, task_rows(s), s.width, s.value_width);
  Buffers::carve(queries, s);
  KeyGradient::carve(keys, tokens_per_step(s) * group_of(s), s.width, s.value_width);
  return at_least(queries.used, keys.used);
}

void backward_queries(const BackwardParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  const Sizes& s = p.sizes;
  const PageMap packed{nullptr, 0, 1};
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(s, p.chunks, p.first_task, p.chunk_count, index);
    Carver carver{static_cast<char*>(scratch)};
    const QueryGradient g = QueryGradient::carve(carver, task.tokens * group_of(s), s.width, s.value_width);
    const Buffers buffers = Buffers::carve(carver, s);
    set_limits(s, task, g.rows);
    pack_heads(s, p.q, task, s.width, s.scale, buffers.queries, g.queries);
    pack_heads(s, p.d_out, task, s.value_width, 1, buffers.queries, g.d_out);
    for (int64_t lane = 0; lane < g.rows.lanes; ++lane) {
      const int64_t at = scalar_of(s, task, at_most(lane, g.rows.count - 1));
      g.lse[lane] = p.lse[at];
      g.delta[lane] = p.delta[at];
    }
    const KeyRows keys = head_rows(p.k, task.head), values = head_rows(p.v, task.head);
    const int64_t end = task.position + task.tokens;
    for (int64_t first = 0; first < end; first += key_block) {
      const int64_t count = at_most(end - first, key_block);
      const float* key = key_row(keys, packed, *task.chunk, first);
      const float* value = key_row(values, packed, *task.chunk, first);
      for (int64_t i = 0; i < count; ++i) {
        copy_row(key + i * keys.row_stride, s.width, buffers.keys + i * s.width);
        copy_row(value + i * values.row_stride, s.value_width, buffers.values + i * s.value_width);
      }
      gather_query_gradient(g, first, count, buffers.keys, s.width, buffers.values, s.value_width);
    }
    for (int64_t r = 0; r < g.rows.count; ++r) {
      scale_row(g.sums + r * s.width, s.width, set(s.scale), const_cast<float*>(row_of(s, p.d_q, task, r)));
    }
  }
}

// The queries of a chunk that see any key of the block, step by step.
TRILITHON_INLINE void gather_from_chunk(const BackwardParams& p, const Chunk& chunk, int64_t head, const KeyGradient& g) {
  const Sizes& s = p.sizes;
  const int64_t group = group_of(s), step = tokens_per_step(s);
  for (int64_t begin = at_least(g.first - chunk.position, 0); begin < chunk.query_count; begin += step) {
    const Task task{&chunk, head, chunk.query_begin + begin, chunk.position + begin, at_most(chunk.query_count - begin, step)};
    for (int64_t r = 0; r < task.tokens * group; ++r) {
      scale_row(row_of(s, p.q, task, r), s.width, set(s.scale), g.queries + r * s.width);
      copy_row(row_of(s, p.d_out, task, r), s.value_width, g.d_out + r * s.value_width);
      g.lse[r] = p.lse[scalar_of(s, task, r)];
      g.delta[r] = p.delta[scalar_of(s, task, r)];
      g.limits[r] = static_cast<int32_t>(task.position + r / group + 1);
    }
    gather_key_gradient(g, task.tokens * group);
  }
}

void backward_keys(const BackwardParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  const Sizes& s = p.sizes;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const int64_t document = owner_of(p.key_tasks.first_task, p.key_tasks.documents, index);
    const int64_t keys = p.key_tasks.document_starts[document + 1] - p.key_tasks.document_starts[document],
                  blocks = (keys + key_block - 1) / key_block;
    const int64_t local = index - p.key_tasks.first_task[document], head = local / blocks;
    Carver carver{static_cast<char*>(scratch)};
    KeyGradient g = KeyGradient::carve(carver, tokens_per_step(s) * group_of(s), s.width, s.value_width);
    g.first = local % blocks * key_block;
    g.count = at_most(keys - g.first, key_block);
    fill_zero(g.d_keys, key_block * s.width);
    fill_zero(g.d_values, key_block * s.value_width);
    const int64_t row = p.key_tasks.document_starts[document] + g.first;
    const KeyRows key_rows = head_rows(p.k, head), value_rows = head_rows(p.v, head);
    pack_rows(g.count, s.width, key_rows.data + row * key_rows.row_stride, key_rows.row_stride, g.keys);
    pack_rows(g.count, s.value_width, value_rows.data + row * value_rows.row_stride, value_rows.row_stride, g.values);
    for (int64_t c = p.key_tasks.document_chunks[document]; c < p.key_tasks.document_chunks[document + 1]; ++c)
      gather_from_chunk(p, p.chunks[c], head, g);
    for (int64_t i = 0; i < g.count; ++i) {
      copy_row(g.d_keys + i * s.width, s.width, p.d_k.data + (row + i) * p.d_k.stride + head * p.d_k.head_stride);
      copy_row(g.d_values + i * s.value_width, s.value_width, p.d_v.data + (row + i) * p.d_v.stride + head * p.d_v.head_stride);
    }
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(attention, (tokens_per_task, segment_keys, keys_per_task, forward_scratch, partial_bytes, backward_scratch,
                                     forward, forward_segment, forward_combine, delta, backward_queries, backward_keys))
