#include "isa/index-scores.h"
#include "ops/dsa-indexer/dsa-indexer.h"

KERNELS_BEGIN

using namespace dsa_indexer;

// Rows that share the keys of a block: enough to pay for their panels.
constexpr int64_t rows_wanted = 192;

int64_t tokens_per_task(const Sizes& s) { return at_least(rows_wanted / s.heads, 1); }
int64_t segment_keys() { return key_segment; }
int64_t keys_per_task(bool sparse) { return sparse ? 4 * key_block : key_block; }

// The best keys of one query so far, in the order of their positions: more of them than wanted, thrown out when room runs short.
struct Candidates {
  int32_t* ranks;      // scores as integers of the same order
  int32_t* positions;  //
  int64_t count;
  bool full;      // `least` is set
  int32_t least;  // rank of the last of the best top_k: a later key must be above it

  // Room for twice the best, and for a block.
  static int64_t room(const Sizes& s) { return 2 * s.top_k + 4 * key_block; }

  static Candidates carve(Carver& carver, const Sizes& s) {
    int32_t* ranks = carver.take<int32_t>(room(s));
    return {ranks, carver.take<int32_t>(room(s)), 0, false, 0};
  }
};

// Order of floats as order of integers. NaN comes last.
TRILITHON_INLINE I rank_of(F score) {
  const I raw = as_int(score);
  return iselect(is_nan(score), iset(INT32_MIN), ixor(raw, iand(isar<31>(raw), iset(INT32_MAX))));
}

// Keeps the best `wanted` candidates; of equal ones those at lower positions. Radix selection, a byte at a time from the top.
static void keep_best(Candidates& c, int64_t wanted) {
  if (c.count <= wanted) return;
  uint32_t prefix = 0, mask = 0;
  int64_t missing = wanted;
  for (int shift = 24; shift >= 0; shift -= 8) {
    int32_t histogram[256];
    for (int32_t& bin : histogram) bin = 0;
    for (int64_t i = 0; i < c.count; ++i) {
      const uint32_t rank = static_cast<uint32_t>(c.ranks[i]) ^ 0x80000000u;
      if ((rank & mask) == prefix) ++histogram[rank >> shift & 0xFF];
    }
    uint32_t bin = 255;
    while (histogram[bin] < missing) missing -= histogram[bin--];
    prefix |= bin << shift;
    mask |= 0xFFu << shift;
  }
  // `prefix` is the rank of the last that stays, `missing` how many of that rank stay.
  int64_t kept = 0;
  for (int64_t i = 0; i < c.count; ++i) {
    const uint32_t rank = static_cast<uint32_t>(c.ranks[i]) ^ 0x80000000u;
    if (rank < prefix || (rank == prefix && missing-- <= 0)) continue;
    c.ranks[kept] = c.ranks[i];
    c.positions[kept++] = c.positions[i];
  }
  c.count = kept;
  c.full = true;
  c.least = static_cast<int32_t>(prefix ^ 0x80000000u);
}

// Takes up the scores of `count` keys from position `first` on.
TRILITHON_INLINE void take_up(Candidates& c, const Sizes& s, const float* scores, int64_t first, int64_t count) {
  if (c.count + key_block + 16 > Candidates::room(s)) keep_best(c, s.top_k);
  for (int64_t lane = 0; lane < count; lane += 16) {
    const int64_t n = at_most(count - lane, 16);
    const I rank = rank_of(load(scores + lane));
    const I position = iadd(iota(), iset(static_cast<int32_t>(first + lane)));
    if (!c.full) {
      istore_n(c.ranks + c.count, n, rank);
      istore_n(c.positions + c.count, n, position);
      c.count += n;
      continue;
    }
    unsigned above = bits(and_(igt(rank, iset(c.least)), trilithon::TRILITHON_ISA_NS::first(n)));
    if (above == 0) continue;
    int32_t ranks[16];
    istore(ranks, rank);
    for (; above != 0; above &= above - 1) {
      const int i = __builtin_ctz(above);
      c.ranks[c.count] = ranks[i];
      c.positions[c.count++] = static_cast<int32_t>(first + lane + i);
    }
  }
}

// Writes the list of one query, -1 behind it.
TRILITHON_INLINE void write_list(const SelectParams& p, int64_t query, const int32_t* positions, int64_t count) {
  int32_t* list = p.indices + query * p.sizes.top_k;
  for (int64_t i = 0; i < count; ++i) list[i] = positions == nullptr ? static_cast<int32_t>(i) : positions[i];
  for (int64_t i = count; i < p.sizes.top_k; ++i) list[i] = -1;
  p.counts[query] = static_cast<int32_t>(count);
}

TRILITHON_INLINE IndexQueries index_queries(const SelectParams& p) { return {p.q, p.weights, p.weight_stride, p.sizes.scale}; }

int64_t select_scratch(const Sizes& s) {
  Carver carver{nullptr};
  IndexStep::carve(carver, s.tokens_per_task, s.heads, s.width);
  carver.take<Candidates>(s.tokens_per_task);
  for (int64_t t = 0; t < s.tokens_per_task; ++t) Candidates::carve(carver, s);
  return carver.used;
}

void select(const SelectParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  const Sizes& s = p.sizes;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(s.tokens_per_task, p.chunks, p.first_task, p.chunk_count, index);
    // Queries that see no more than top_k keys take them all, unscored.
    const int64_t unscored = clamp(s.top_k - task.position, 0, task.tokens);
    for (int64_t t = 0; t < unscored; ++t) write_list(p, task.query + t, nullptr, task.position + t + 1);
    if (unscored == task.tokens) continue;
    const Span span{task.chunk, task.query + unscored, task.position + unscored, task.tokens - unscored, nullptr, 0};
    Carver carver{static_cast<char*>(scratch)};
    IndexStep step = IndexStep::carve(carver, s.tokens_per_task, s.heads, s.width);
    Candidates* candidates = carver.take<Candidates>(s.tokens_per_task);
    for (int64_t t = 0; t < span.tokens; ++t) candidates[t] = Candidates::carve(carver, s);
    load_index_queries(step, index_queries(p), span);
    for (int64_t first = 0; first < span.end(); first += key_block) {
      const int64_t count = at_most(span.end() - first, key_block);
      load_index_keys(step, p.k, p.pages, span, first, count);
      index_scores(step, step.panels, count);
      for (int64_t t = 0; t < span.tokens; ++t) {
        const int64_t seen = clamp(span.seen(t) - first, 0, count);
        if (seen > 0) take_up(candidates[t], s, step.scores + t * key_block, first, seen);
      }
    }
    for (int64_t t = 0; t < span.tokens; ++t) {
      keep_best(candidates[t], s.top_k);
      write_list(p, span.query + t, candidates[t].positions, candidates[t].count);
    }
  }
}

// Split: item = task and segment. The scores go to memory and are taken up by select_scored.
void score_segment(const SelectParams& p, int64_t item_begin, int64_t item_end, void* scratch) {
  const Sizes& s = p.sizes;
  for (int64_t item = item_begin; item < item_end; ++item) {
    const int64_t index = item / p.segments, begin = item % p.segments * key_segment;
    const Task task = find_task(1, p.chunks, p.first_task, p.chunk_count, index);
    const Span span{task.chunk, task.query, task.position, 1, nullptr, 0};
    const int64_t end = at_most(span.end(), begin + key_segment);
    if (begin >= end || span.end() <= s.top_k) continue;
    Carver carver{static_cast<char*>(scratch)};
    IndexStep step = IndexStep::carve(carver, 1, s.heads, s.width);
    load_index_queries(step, index_queries(p), span);
    for (int64_t first = begin; first < end; first += key_block) {
      const int64_t count = at_most(end - first, key_block);
      load_index_keys(step, p.k, p.pages, span, first, count);
      index_scores(step, step.panels, count);
      copy_row(step.scores, count, p.task_scores + index * p.segments * key_segment + first);
    }
  }
}

void select_scored(const SelectParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  const Sizes& s = p.sizes;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(1, p.chunks, p.first_task, p.chunk_count, index);
    const int64_t end = task.position + 1;
    if (end <= s.top_k) {
      write_list(p, task.query, nullptr, end);
      continue;
    }
    Carver carver{static_cast<char*>(scratch)};
    Candidates candidates = Candidates::carve(carver, s);
    const float* scores = p.task_scores + index * p.segments * key_segment;
    for (int64_t first = 0; first < end; first += key_block) {
      take_up(candidates, s, scores + first, first, at_most(end - first, key_block));
    }
    keep_best(candidates, s.top_k);
    write_list(p, task.query, candidates.positions, candidates.count);
  }
}

TRILITHON_INLINE IndexQueries index_queries(const ScoresParams& p) { return {p.q, p.weights, p.weight_stride, p.sizes.scale}; }

constexpr PageMap packed{nullptr, 0, 1};

int64_t scores_scratch(const Sizes& s) {
  Carver carver{nullptr};
  IndexStep::carve(carver, s.tokens_per_task, s.heads, s.width);
  carver.take(s.tokens_per_task * s.heads * (s.width + 1));
  IndexKeyTask::carve(carver, s.keys_per_task, s.width);
  return carver.used;
}

void scores(const ScoresParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  const Sizes& s = p.sizes;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(s.tokens_per_task, p.chunks, p.first_task, p.chunk_count, index);
    for_spans(p.chosen, *task.chunk, task.query, task.position, task.tokens, task.tokens, [&](const Span& span) {
      Carver carver{static_cast<char*>(scratch)};
      IndexStep step = IndexStep::carve(carver, span.tokens, s.heads, s.width);
      load_index_queries(step, index_queries(p), span);
      for (int64_t t = 0; t < span.tokens; ++t) fill_zero(p.scores + (span.query + t) * s.top_k, s.top_k);
      for (int64_t first = 0; first < span.end(); first += key_block) {
        const int64_t count = at_most(span.end() - first, key_block);
        load_index_keys(step, p.k, packed, span, first, count);
        index_scores(step, step.panels, count);
        for (int64_t t = 0; t < span.tokens; ++t) {
          const int64_t seen = clamp(span.seen(t) - first, 0, count);
          if (seen > 0) copy_row(step.scores + t * key_block, seen, p.scores + (span.query + t) * s.top_k + first);
        }
      }
    });
  }
}

// Given gradients by the scores in slots [first, first + count) of a span; 0 where a token sees no key.
TRILITHON_INLINE void load_slopes(const ScoresParams& p, const IndexStep& step, const Span& span, int64_t first, int64_t count) {
  for (int64_t t = 0; t < span.tokens; ++t) {
    const int64_t seen = clamp(span.seen(t) - first, 0, count);
    float* slopes = step.slopes + t * key_block;
    fill_zero(slopes, key_block);
    copy_row(p.d_scores + (span.query + t) * p.sizes.top_k + first, seen, slopes);
  }
}

void backward_queries(const ScoresParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  const Sizes& s = p.sizes;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task = find_task(s.tokens_per_task, p.chunks, p.first_task, p.chunk_count, index);
    for_spans(p.chosen, *task.chunk, task.query, task.position, task.tokens, task.tokens, [&](const Span& span) {
      Carver carver{static_cast<char*>(scratch)};
      IndexStep step = IndexStep::carve(carver, span.tokens, s.heads, s.width);
      const int64_t rows = span.tokens * s.heads;
      float* d_queries = carver.take(rows * s.width);
      float* d_weights = carver.take(rows);
      fill_zero(d_queries, rows * s.width);
      fill_zero(d_weights, rows);
      load_index_queries(step, index_queries(p), span);
      for (int64_t first = 0; first < span.end(); first += key_block) {
        const int64_t count = at_most(span.end() - first, key_block);
        load_index_keys(step, p.k, packed, span, first, count);
        index_scores(step, step.panels, count);
        load_slopes(p, step, span, first, count);
        gather_index_queries(step, span, first, count, d_queries, d_weights);
      }
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t query = span.query + row / s.heads, head = row % s.heads;
        copy_row(d_queries + row * s.width, s.width, p.d_q.data + query * p.d_q.stride + head * p.d_q.head_stride);
        p.d_weights[query * p.d_weight_stride + head] = d_weights[row] * s.scale;
      }
    });
  }
}

void backward_keys(const ScoresParams& p, int64_t task_begin, int64_t task_end, void* scratch) {
  const Sizes& s = p.sizes;
  for (int64_t index = task_begin; index < task_end; ++index) {
    Carver carver{static_cast<char*>(scratch)};
    IndexStep step = IndexStep::carve(carver, s.tokens_per_task, s.heads, s.width);
    IndexKeyTask task = IndexKeyTask::carve(carver, s.keys_per_task, s.width);
    for_key_task(step, task, p.key_tasks, index, s.keys_per_task, p.k, p.chunks, p.chosen, s.tokens_per_task, [&](const Span& span) {
      load_index_queries(step, index_queries(p), span);
      gather_index_task(step, task, p.k, packed, span, [&](int64_t first, int64_t count) { load_slopes(p, step, span, first, count); });
    });
    store_key_task(step, task, p.d_k, p.d_k_stride);
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(dsa_indexer, (tokens_per_task, segment_keys, keys_per_task, select_scratch, scores_scratch, select, score_segment,
                                       select_scored, scores, backward_queries, backward_keys))
