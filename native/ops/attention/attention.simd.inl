#include "isa/attend-backward.h"
#include "ops/attention/attention.h"

KERNELS_BEGIN

using namespace attention;

// Rows that share the keys of a task: enough to pay for copying keys together, few enough for the second-level cache.
TRILITHON_INLINE int64_t rows_wanted(const Sizes& s) { return s.width + 2 * s.value_width <= 1024 ? 128 : 64; }

// From so many rows on, keys are copied together before they are used; fewer rows read them where they lie.
constexpr int64_t rows_worth_copying = 17;

TRILITHON_INLINE int64_t group_of(const Sizes& s) { return s.heads / s.kv_heads; }
TRILITHON_INLINE int64_t task_rows(const Sizes& s) { return s.tokens_per_task * group_of(s); }

int64_t tokens_per_task(const Sizes& s) { return at_least(rows_wanted(s) / group_of(s), 1); }
bool few_rows(const Sizes& s) { return task_rows(s) <= 16; }
int64_t segment_keys() { return key_segment; }
int64_t keys_per_task() { return key_block; }

// Keys for which a task that does all gradients at once brings in its queries.
constexpr int64_t joint_keys = 2 * key_block;

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

// The queries of one task: `tokens` of them from row `query`, of the heads that share key head `head`. A forward task goes on with
// the next key heads, `heads` in all.
struct Task {
  const Chunk* chunk;
  int64_t head, heads, query, position, tokens;

  TRILITHON_INLINE_MEMBER Task of_head(int64_t index) const { return {chunk, head + index, 1, query, position, tokens}; }
};

// Tasks of a chunk: key head by key head, and the queries that see most keys first, so that the longest work starts first.
TRILITHON_INLINE Task find_task(const Sizes& s, const Chunk* chunks, const int64_t* first_task, int64_t chunk_count, int64_t task) {
  const int64_t owner = owner_of(first_task, chunk_count, task);
  const Chunk& chunk = chunks[owner];
  const int64_t blocks = (chunk.query_count + s.tokens_per_task - 1) / s.tokens_per_task, local = task - first_task[owner];
  const int64_t begin = (blocks - 1 - local % blocks) * s.tokens_per_task, head = local / blocks * s.heads_per_task;
  return {&chunk,
          head,
          at_most(s.kv_heads - head, s.heads_per_task),
          chunk.query_begin + begin,
          chunk.position + begin,
          at_most(chunk.query_count - begin, s.tokens_per_task)};
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

// Reads ahead of a decoding task: rows of keys and values of the next block, in the order of memory, which is that of tokens and within
// them heads. A line at a time while the block before is computed, memory and computation take the longer of their times.
struct ReadAhead {
  const ForwardParams* p;
  const Chunk* chunk;
  KeyRows rows[2];  // keys, values
  int64_t row_lines[2];
  int64_t position, end;
  const char* row;
  int64_t which, line;

  TRILITHON_INLINE_MEMBER void start(int64_t first, int64_t last) {
    position = first;
    end = last;
    which = line = 0;
    row = position < end ? address() : nullptr;
  }
  TRILITHON_INLINE_MEMBER const char* address() const {
    return reinterpret_cast<const char*>(key_row(rows[which], p->pages, *chunk, position));
  }
  TRILITHON_INLINE_MEMBER void fetch(int64_t lines) {
    for (; lines > 0 && row != nullptr; --lines) {
      __builtin_prefetch(row + 64 * line, 0, 2);
      if (++line < row_lines[which]) continue;
      line = 0;
      position += which;
      which ^= 1;
      row = position < end ? address() : nullptr;
    }
  }
};

// One key head of a task: what it has gathered and where it reads.
struct HeadWork {
  const ForwardParams* p;
  Task task;
  Attention attention;
  Partial all, part;
  KeyRows keys, values;
  Buffers buffers;
  bool copied;
  ReadAhead* read_ahead;

  static HeadWork carve(Carver& carver, const Sizes& s, int64_t rows, const Buffers& buffers) {
    HeadWork work{};
    work.attention = Attention::carve(carver, rows, s.width, s.value_width);
    work.all = Partial::carve(carver, rows, s.value_width);
    work.part = Partial::carve(carver, rows, s.value_width);
    work.buffers = buffers;
    return work;
  }

  TRILITHON_INLINE_MEMBER int64_t fill(int64_t first, int64_t count, KeyRun* runs) const {
    const Sizes& s = p->sizes;
    int64_t used = 0;
    for (int64_t i = 0; i < count;) {
      const int64_t run = key_run(p->pages, first + i, count - i);
      const float* key = key_row(keys, p->pages, *task.chunk, first + i);
      const float* value = key_row(values, p->pages, *task.chunk, first + i);
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
  }

  TRILITHON_INLINE_MEMBER void fetch(int64_t lines) const { read_ahead->fetch(lines); }
};

// Lines of a row that the heads of a task have together, from the first of them on.
TRILITHON_INLINE int64_t row_lines(const PagedHeads& heads, int64_t count, int64_t width) {
  return ((count - 1) * heads.head_stride + width + 15) / 16;
}

// The heads of a task, with their queries in place.
TRILITHON_INLINE HeadWork* start_heads(const ForwardParams& p, const Task& task, Carver& carver) {
  const Sizes& s = p.sizes;
  const int64_t rows = task.tokens * group_of(s);
  HeadWork* heads = carver.take<HeadWork>(task.heads);
  const Buffers buffers = Buffers::carve(carver, s);
  ReadAhead* read_ahead = carver.take<ReadAhead>(1);
  *read_ahead = {&p,
                 task.chunk,
                 {head_rows(p.k, task.head), head_rows(p.v, task.head)},
                 {row_lines(p.k, task.heads, s.width), row_lines(p.v, task.heads, s.value_width)},
                 0,
                 0,
                 nullptr,
                 0,
                 0};
  for (int64_t h = 0; h < task.heads; ++h) {
    HeadWork& work = heads[h];
    work = HeadWork::carve(carver, s, rows, buffers);
    work.p = &p;
    work.task = task.of_head(h);
    work.keys = head_rows(p.k, task.head + h);
    work.values = head_rows(p.v, task.head + h);
    work.copied = rows >= rows_worth_copying;
    work.read_ahead = read_ahead;
    work.attention.key_stride = work.copied ? s.width : work.keys.row_stride;
    work.attention.value_stride = work.copied ? s.value_width : work.values.row_stride;
    set_limits(s, task, work.attention.rows);
    pack_heads(s, p.q, work.task, s.width, s.scale, buffers.queries, work.attention.queries);
    for (int64_t r = 0; r < rows && rows <= turned_rows; ++r) {
      scale_row(row_of(s, p.q, work.task, r), s.width, set(s.scale), work.attention.scaled + r * s.width);
    }
  }
  return heads;
}

// Keys [begin, end) of one segment, block by block for all heads.
TRILITHON_INLINE void attend_heads(HeadWork* heads, int64_t count, int64_t begin, int64_t end, bool into_all) {
  for (int64_t first = begin; first < end; first += key_block) {
    if (!heads->copied) heads->read_ahead->start(first + key_block, at_most(first + 2 * key_block, end));
    for (int64_t h = 0; h < count; ++h) {
      HeadWork& work = heads[h];
      attend_block(work.attention, into_all ? work.all : work.part, first, at_most(end - first, key_block), work, first == begin);
    }
  }
}

TRILITHON_INLINE void store_rows(const ForwardParams& p, const Task& task, const Attention& a, const Partial& all) {
  finish(
      a, all, [&](int64_t r) { return const_cast<float*>(row_of(p.sizes, p.out, task, r)); },
      [&](int64_t r) { return p.lse == nullptr ? nullptr : p.lse + scalar_of(p.sizes, task, r); });
}

int64_t forward_scratch(const Sizes& s) {
  Carver carver{nullptr};
  carver.take<HeadWork>(s.heads_per_task);
  carver.take<ReadAhead>(1);
  Buffers::carve(carver, s);
  for (int64_t h = 0; h < s.heads_per_task; ++h) HeadWork::carve(carver, s, task_rows(s), {});
  return carver.used;
}

void forward(const ForwardParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(p.sizes, p.chunks, p.first_task, p.chunk_count, index);
    Carver carver{static_cast<char*>(scratch)};
    HeadWork* heads = start_heads(p, task, carver);
    const int64_t end = task.position + task.tokens;
    for (int64_t begin = 0; begin < end; begin += key_segment) {
      attend_heads(heads, task.heads, begin, at_most(begin + key_segment, end), begin == 0);
      for (int64_t h = 0; h < task.heads && begin > 0; ++h) append_segment(heads[h].attention, heads[h].all, heads[h].part, begin);
    }
    for (int64_t h = 0; h < task.heads; ++h) store_rows(p, heads[h].task, heads[h].attention, heads[h].all);
  }
}

// Partial results of one segment for the heads of a task.
int64_t partial_bytes(const Sizes& s) {
  Carver carver{nullptr};
  for (int64_t h = 0; h < s.heads_per_task; ++h) Partial::carve(carver, task_rows(s), s.value_width);
  return carver.used;
}

TRILITHON_INLINE Carver partials_of(const ForwardParams& p, int64_t index, int64_t segment) {
  return {p.partials + (index * p.segments + segment) * p.partial_bytes};
}

void forward_segment(const ForwardParams& p, int64_t item_begin, int64_t item_end, void* scratch) {
  for (int64_t item = item_begin; item < item_end; ++item) {
    const int64_t index = item / p.segments, segment = item % p.segments, begin = segment * key_segment;
    const Task task = find_task(p.sizes, p.chunks, p.first_task, p.chunk_count, index);
    const int64_t end = at_most(task.position + task.tokens, begin + key_segment);
    if (begin >= end) continue;
    Carver carver{static_cast<char*>(scratch)}, partials = partials_of(p, index, segment);
    HeadWork* heads = start_heads(p, task, carver);
    for (int64_t h = 0; h < task.heads; ++h) {
      heads[h].part = Partial::carve(partials, task.tokens * group_of(p.sizes), p.sizes.value_width);
    }
    attend_heads(heads, task.heads, begin, end, false);
  }
}

void forward_combine(const ForwardParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  const Sizes& s = p.sizes;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(s, p.chunks, p.first_task, p.chunk_count, index);
    const int64_t rows = task.tokens * group_of(s), end = task.position + task.tokens;
    for (int64_t h = 0; h < task.heads; ++h) {
      Carver carver{static_cast<char*>(scratch)};
      const Attention a = Attention::carve(carver, rows, s.width, s.value_width);
      set_limits(s, task, a.rows);
      // Partial results of the heads lie one after another.
      const auto partial_of_head = [&](int64_t segment) {
        Carver partials = partials_of(p, index, segment);
        for (int64_t skipped = 0; skipped < h; ++skipped) Partial::carve(partials, rows, s.value_width);
        return Partial::carve(partials, rows, s.value_width);
      };
      const Partial all = partial_of_head(0);
      for (int64_t segment = 1; segment * key_segment < end; ++segment) {
        append_segment(a, all, partial_of_head(segment), segment * key_segment);
      }
      store_rows(p, task.of_head(h), a, all);
    }
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

// A task over all pairs of a document and a key head.
struct JointTask {
  KeyGradient step;
  float* keys;    // [joint_keys, width]
  float* panels;  // of keys and values, key_block by key_block
  float* value_panels;
  float* d_keys;     // [joint_keys, width]
  float* d_values;   // [joint_keys, value_width]
  float* d_queries;  // [rows of a step, width]

  static JointTask carve(Carver& carver, const Sizes& s) {
    JointTask task{};
    const int64_t rows = tokens_per_step(s) * group_of(s);
    task.step = KeyGradient::carve(carver, rows, s.width, s.value_width);
    task.keys = carver.take(joint_keys * s.width);
    task.panels = carver.take(joint_keys * s.width);
    task.value_panels = carver.take(joint_keys * s.value_width);
    task.d_keys = carver.take(joint_keys * s.width);
    task.d_values = carver.take(joint_keys * s.value_width);
    task.d_queries = carver.take(rows * s.width);
    return task;
  }
};

int64_t backward_scratch(const Sizes& s) {
  Carver queries{nullptr}, keys{nullptr}, joint{nullptr};
  JointTask::carve(joint, s);
  QueryGradient::carve(queries, task_rows(s), s.width, s.value_width);
  Buffers::carve(queries, s);
  KeyGradient::carve(keys, tokens_per_step(s) * group_of(s), s.width, s.value_width);
  return at_least(at_least(queries.used, keys.used), joint.used);
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

// The queries of a chunk that see any key from position `first` on, step by step: body(task, rows) with the rows in place.
template <typename Body>
TRILITHON_INLINE void for_steps(const BackwardParams& p, const Chunk& chunk, int64_t head, int64_t first, const KeyGradient& g, Body body) {
  const Sizes& s = p.sizes;
  const int64_t group = group_of(s), step = tokens_per_step(s);
  for (int64_t begin = at_least(first - chunk.position, 0); begin < chunk.query_count; begin += step) {
    const Task task{&chunk, head, 1, chunk.query_begin + begin, chunk.position + begin, at_most(chunk.query_count - begin, step)};
    for (int64_t r = 0; r < task.tokens * group; ++r) {
      scale_row(row_of(s, p.q, task, r), s.width, set(s.scale), g.queries + r * s.width);
      copy_row(row_of(s, p.d_out, task, r), s.value_width, g.d_out + r * s.value_width);
      g.lse[r] = p.lse[scalar_of(s, task, r)];
      g.delta[r] = p.delta[scalar_of(s, task, r)];
      g.limits[r] = static_cast<int32_t>(task.position + r / group + 1);
    }
    body(task, task.tokens * group);
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
    for (int64_t c = p.key_tasks.document_chunks[document]; c < p.key_tasks.document_chunks[document + 1]; ++c) {
      for_steps(p, p.chunks[c], head, g.first, g, [&](const Task&, int64_t rows) { gather_key_gradient(g, rows); });
    }
    for (int64_t i = 0; i < g.count; ++i) {
      copy_row(g.d_keys + i * s.width, s.width, p.d_k.data + (row + i) * p.d_k.stride + head * p.d_k.head_stride);
      copy_row(g.d_values + i * s.value_width, s.value_width, p.d_v.data + (row + i) * p.d_v.stride + head * p.d_v.head_stride);
    }
  }
}

// All gradients at once; a task is a document and a key head. Sums over keys of d_q are continued in d_q itself.
void backward_joint(const BackwardParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  const Sizes& s = p.sizes;
  const int64_t group = group_of(s);
  for (int64_t index = task_begin; index < task_end; ++index) {
    const int64_t document = index / s.kv_heads, head = index % s.kv_heads;
    const int64_t row = p.key_tasks.document_starts[document], keys = p.key_tasks.document_starts[document + 1] - row;
    const int64_t chunk_begin = p.key_tasks.document_chunks[document], chunk_end = p.key_tasks.document_chunks[document + 1];
    const KeyRows key_rows = head_rows(p.k, head), value_rows = head_rows(p.v, head);
    Carver carver{static_cast<char*>(scratch)};
    JointTask task = JointTask::carve(carver, s);
    KeyGradient& g = task.step;
    for (int64_t first = 0; first < keys; first += joint_keys) {
      const int64_t count = at_most(keys - first, joint_keys);
      for (int64_t i = 0; i < count; ++i) {
        copy_row(key_rows.data + (row + first + i) * key_rows.row_stride, s.width, task.keys + i * s.width);
      }
      for (int64_t begin = 0; begin < count; begin += key_block) {
        const int64_t some = at_most(count - begin, key_block);
        pack_rows(some, s.width, task.keys + begin * s.width, s.width, task.panels + begin * s.width);
        pack_rows(some, s.value_width, value_rows.data + (row + first + begin) * value_rows.row_stride, value_rows.row_stride,
                  task.value_panels + begin * s.value_width);
      }
      fill_zero(task.d_keys, count * s.width);
      fill_zero(task.d_values, count * s.value_width);
      for (int64_t c = chunk_begin; c < chunk_end; ++c) {
        for_steps(p, p.chunks[c], head, first, g, [&](const Task& queries, int64_t rows) {
          if (first > 0) {
            for (int64_t r = 0; r < rows; ++r) copy_row(row_of(s, p.d_q, queries, r), s.width, task.d_queries + r * s.width);
          }
          for (int64_t begin = 0; begin < count && first + begin < queries.position + queries.tokens; begin += key_block) {
            g.first = first + begin;
            g.count = at_most(count - begin, key_block);
            g.keys = task.panels + begin * s.width;
            g.values = task.value_panels + begin * s.value_width;
            g.d_keys = task.d_keys + begin * s.width;
            g.d_values = task.d_values + begin * s.value_width;
            gather_key_gradient(g, rows);
            gather_row_gradient(g, rows, task.keys + begin * s.width, task.d_queries);
          }
          for (int64_t r = 0; r < rows; ++r) {
            copy_row(task.d_queries + r * s.width, s.width, const_cast<float*>(row_of(s, p.d_q, queries, r)));
          }
        });
      }
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = row + first + i;
        copy_row(task.d_keys + i * s.width, s.width, p.d_k.data + at * p.d_k.stride + head * p.d_k.head_stride);
        copy_row(task.d_values + i * s.value_width, s.value_width, p.d_v.data + at * p.d_v.stride + head * p.d_v.head_stride);
      }
    }
    for (int64_t c = chunk_begin; c < chunk_end; ++c) {
      for (int64_t t = 0; t < p.chunks[c].query_count; ++t) {
        for (int64_t i = 0; i < group; ++i) {
          float* d_q = p.d_q.data + (p.chunks[c].query_begin + t) * p.d_q.stride + (head * group + i) * p.d_q.head_stride;
          scale_row(d_q, s.width, set(s.scale), d_q);
        }
      }
    }
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(attention,
                         (tokens_per_task, few_rows, segment_keys, keys_per_task, forward_scratch, partial_bytes, backward_scratch, forward,
                          forward_segment, forward_combine, delta, backward_queries, backward_keys, backward_joint))
