// Softmax attention of query rows over keys, in the pieces that attention and MLA attention share.
//
// Lanes run along query rows: up to some hundred rows (tokens x heads) that see the same keys. Scores of 64 keys are a block_product
// keys · queriesᵀ, their softmax needs no sum across lanes, and the weighted values are a block_product weightsᵀ · values. Keys are
// read where they lie. For the few rows of one decoded token lanes may run along keys instead (isa/few-rows.h): the same order.
//
// ORDER, for one row, whatever rows are beside it:
//   - score = one fma chain over the width, from 0, of the query times `scale` (rounded once) and the key;
//   - keys are cut at positions that are multiples of key_block (64). Within a block: the maximum; weights e^(score - maximum so
//     far); their sum in four chains (key mod 4) added as (0 + 1) + (2 + 3); values in one fma chain per column over the keys in
//     ascending order, continued from block to block;
//   - a block that raises the maximum multiplies sum and values by e^(old - new) before it is added;
//   - keys are cut again at multiples of key_segment (1024): each segment starts anew, and the segments are combined in order.
// Positions are those in the document (or in the list of chosen keys), so nothing depends on batch, chunks, pages or threads.
// Keys that a row does not see are left out of its chains: what they hold, even NaN, does not matter.
#pragma once

#include "include/sequences.h"
#include "isa/few-rows.h"
#include "isa/gemm-pack.h"
#include "isa/math.h"
#include "isa/row-reduce.h"

KERNELS_BEGIN

constexpr int64_t key_block = 64;
constexpr int64_t key_segment = 1024;

TRILITHON_INLINE int64_t at_least(int64_t value, int64_t limit) { return value > limit ? value : limit; }
TRILITHON_INLINE int64_t clamp(int64_t value, int64_t low, int64_t high) { return at_most(at_least(value, low), high); }
TRILITHON_INLINE int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Cuts a region of scratch into arrays that start at multiples of 64 bytes. With a null base it only counts.
struct Carver {
  char* base;
  int64_t used = 0;

  template <typename T = float>
  T* take(int64_t count) {
    T* array = base == nullptr ? nullptr : reinterpret_cast<T*>(base + used);
    used += round_up(count * static_cast<int64_t>(sizeof(T)), 64);
    return array;
  }
};

TRILITHON_INLINE const float* key_row(const KeyRows& rows, const PageMap& map, const Chunk& chunk, int64_t position) {
  if (map.block_table == nullptr) return rows.data + (chunk.key_begin + position) * rows.row_stride;
  const int64_t page = map.block_table[chunk.document * map.table_stride + position / map.block_size];
  return rows.data + page * rows.page_stride + position % map.block_size * rows.row_stride;
}

// How many keys from `position` on, at most `limit`, lie one row_stride apart.
TRILITHON_INLINE int64_t key_run(const PageMap& map, int64_t position, int64_t limit) {
  return map.block_table == nullptr ? limit : at_most(limit, map.block_size - position % map.block_size);
}

// The chunk that task `task` belongs to, from the number of tasks before each of `count` chunks.
TRILITHON_INLINE int64_t owner_of(const int64_t* first_task, int64_t count, int64_t task) {
  int64_t low = 0, high = count;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (first_task[middle] <= task ? low : high) = middle;
  }
  return low;
}

TRILITHON_INLINE void fill_zero(float* to, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) store_n(to + i, count - i, zero());
}

TRILITHON_INLINE void copy_row(const float* from, int64_t width, float* to) {
  for (int64_t i = 0; i + 16 <= width; i += 16) store(to + i, load(from + i));
  if (width % 16 != 0) store_n(to + width / 16 * 16, width % 16, load_n(from + width / 16 * 16, width % 16));
}

TRILITHON_INLINE void scale_row(const float* from, int64_t width, F factor, float* to) {
  for (int64_t i = 0; i < width; i += 16) store_n(to + i, width - i, mul(load_n(from + i, width - i), factor));
}

// The same chains as block_product with a long k, in parts that fit the first-level cache.
template <typename A, typename B>
TRILITHON_INLINE void deep_product(int64_t m, int64_t n, int64_t k, A a, B b, float* c, int64_t c_stride) {
  for (int64_t i = 0; i < k; i += gemm_depth) {
    const Start start = i == 0 ? Start::zero : Start::resume;
    const int64_t depth = at_most(k - i, gemm_depth);
    if (n == 16 && m > 3) {
      // Half a panel: tiles of one vector, where block_product would compute two.
      for (int64_t tile = 0; tile < row_tiles(m); ++tile) {
        const int64_t row = tile_begin(m, tile);
        row_tile_product<1>(tile_begin(m, tile + 1) - row, a.tile(m, tile).at_k(i), b.at_k(i), 0, depth, c + row * c_stride, c_stride, n,
                            start);
      }
    } else {
      block_product(m, n, depth, a.at_k(i), b.at_k(i), c, c_stride, start);
    }
  }
}

// Panels of BPanels from `count` rows that lie `stride` apart.
TRILITHON_INLINE void pack_rows(int64_t count, int64_t width, const float* rows, int64_t stride, float* to) {
  for (int64_t r = 0; r < count; r += panel_columns) {
    pack_b_panel(at_most(count - r, panel_columns), width, rows + r * stride, stride, to + r * width);
  }
}

// Query rows that see keys of one document, with limits that do not fall: row r sees the keys at positions below limits[r].
// Lanes from `count` on repeat the last limit and belong to queries of zeros.
struct Rows {
  int64_t count, lanes;  // lanes: count rounded up to 16
  int32_t* limits;       // [lanes]

  TRILITHON_INLINE_MEMBER int64_t first_seeing(int64_t position) const {
    int64_t row = 0;
    while (row < count && limits[row] <= position) ++row;
    return row;
  }
};

// Keys first + offset, first + offset + 1, ... that lie one stride apart; `first` is the position where their block starts.
struct KeyRun {
  const float* keys;
  const float* values;
  int64_t offset, count;
};

// sums[r] += Σ weights[r, key] · vectors[key] over the keys of a run that row r sees, in ascending order, for rows from `row` on.
// `weights` is an operand of block_product whose k are the keys of the block.
template <typename Weights>
TRILITHON_INLINE void add_seen(const Rows& rows, int64_t row, Weights weights, int64_t first, const KeyRun& run, const float* vectors,
                               int64_t stride, int64_t width, float* sums, Start start) {
  const int64_t begin_position = first + run.offset;
  const Weights left = weights.at_k(run.offset);
  const BRows right{vectors, stride};
  int64_t whole = row;
  while (whole < rows.count && rows.limits[whole] < begin_position + run.count) ++whole;
  for (int64_t begin = row; begin < whole; begin += tile_rows) {
    const int64_t end = at_most(begin + tile_rows, whole);
    const int64_t common = clamp(rows.limits[begin] - begin_position, 0, run.count);
    block_product(end - begin, width, common, left.at_row(begin), right, sums + begin * width, width, start);
    for (int64_t r = begin + 1; r < end; ++r) {
      const int64_t more = clamp(rows.limits[r] - begin_position, 0, run.count) - common;
      if (more <= 0) continue;
      block_product(1, width, more, left.at_row(r).at_k(common), right.at_k(common), sums + r * width, width, Start::resume);
    }
  }
  if (whole == rows.count) return;
  block_product(rows.count - whole, width, run.count, left.at_row(whole), right, sums + whole * width, width, start);
}

// What rows have gathered over some keys.
struct Partial {
  float* top;    // [lanes] largest score
  float* total;  // [lanes] sum of e^(score - top)
  float* out;    // [rows, value_width] values weighted by e^(score - top)

  static Partial carve(Carver& carver, int64_t rows, int64_t value_width) {
    const int64_t lanes = round_up(rows, 16);
    float* top = carver.take(lanes);
    float* total = carver.take(lanes);
    return {top, total, carver.take(rows * value_width)};
  }
};

struct Attention {
  Rows rows;
  int64_t width, value_width, key_stride, value_stride;
  float* queries;  // panels of scaled queries; rows of them if by_keys
  float* weights;  // [key_block, lanes]; [rows, key_block] if by_keys
  float* factors;  // [2, lanes]
  bool by_keys;    // lanes run along keys: at most key_lane_rows rows
  float* near;     // [16, width] if by_keys

  static Attention carve(Carver& carver, int64_t rows, int64_t width, int64_t value_width) {
    const int64_t lanes = round_up(rows, 16);
    Attention a{};
    a.rows = {rows, lanes, carver.take<int32_t>(lanes)};
    a.width = width;
    a.value_width = value_width;
    a.queries = carver.take(round_up(rows, panel_columns) * width);
    a.weights = carver.take(key_block * lanes);
    a.factors = carver.take(2 * lanes);
    return a;
  }
};

// Calls body(key, chain) for keys 0 to count - 1; chain = key mod 4 is known when compiled, so that four chains stay in registers.
template <typename Body>
TRILITHON_INLINE void for_keys(int64_t count, Body body) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    body(i, 0);
    body(i + 1, 1);
    body(i + 2, 2);
    body(i + 3, 3);
  }
  if (i < count) body(i, 0);
  if (i + 1 < count) body(i + 1, 1);
  if (i + 2 < count) body(i + 2, 2);
}

// The softmax of one block for sixteen rows: turns scores of `count` keys into weights and updates maximum and sum. A row sees the
// first `seen` of these keys. `masked` is false when every row sees all.
template <bool masked>
TRILITHON_INLINE void soften(float* scores, int64_t stride, int64_t count, I seen, bool fresh, float* top, float* total, float* factors) {
  const F lowest = set(-__builtin_inff());
  F tops[4] = {lowest, lowest, lowest, lowest};
  for_keys(count, [&](int64_t i, int chain) {
    F score = load(scores + i * stride);
    if (masked) score = select(igt(seen, iset(static_cast<int32_t>(i))), score, lowest);
    tops[chain] = max(tops[chain], score);
  });
  F highest = max(max(tops[0], tops[1]), max(tops[2], tops[3]));
  const F before = load(top);
  if (!fresh) highest = max(before, highest);
  F sums[4] = {zero(), zero(), zero(), zero()};
  for_keys(count, [&](int64_t i, int chain) {
    F weight = exp(sub(load(scores + i * stride), highest));
    if (masked) weight = select(igt(seen, iset(static_cast<int32_t>(i))), weight, zero());
    store(scores + i * stride, weight);
    sums[chain] = add(sums[chain], weight);
  });
  const F added = add(add(sums[0], sums[1]), add(sums[2], sums[3]));
  store(top, highest);
  if (fresh) {
    store(total, added);
  } else {
    const F factor = exp(sub(before, highest));
    store(factors, factor);
    store(total, fma(load(total), factor, added));
  }
}

// A row whose maximum stayed has the factor 1, which changes nothing.
TRILITHON_INLINE void rescale(const Attention& a, const Partial& to, int64_t row, int64_t lane) {
  for (unsigned moved = bits(not_(eq(load(a.factors + lane), set(1.0f)))); moved != 0; moved &= moved - 1) {
    const int64_t r = lane + __builtin_ctz(moved);
    if (r < row || r >= a.rows.count) continue;
    scale_row(to.out + r * a.value_width, a.value_width, set(a.factors[r]), to.out + r * a.value_width);
  }
}

// Scores of a block with lanes along keys, two groups of sixteen keys at a time where they lie in place.
TRILITHON_INLINE void score_by_keys(const Attention& a, int64_t count, const KeyRun* runs) {
  const KeyRun* run = runs;
  // Sixteen keys from `key` on if one run has them all.
  const auto in_place = [&](int64_t key) -> const float* {
    if (key + 16 > count) return nullptr;
    while (key >= run->offset + run->count) ++run;
    return key + 16 <= run->offset + run->count ? run->keys + (key - run->offset) * a.key_stride : nullptr;
  };
  for (int64_t key = 0; key < count;) {
    const float* here = in_place(key);
    const float* next = here == nullptr ? nullptr : in_place(key + 16);
    if (next != nullptr) {
      score_few<2>(a.rows.count, {here, next}, a.key_stride, a.width, a.queries, a.weights + key, key_block);
      key += 32;
      continue;
    }
    int64_t stride = a.key_stride;
    if (here == nullptr) {
      for (int64_t i = 0; i < 16; ++i) {
        if (key + i >= count) {
          fill_zero(a.near + i * a.width, a.width);
          continue;
        }
        while (key + i >= run->offset + run->count) ++run;
        copy_row(run->keys + (key + i - run->offset) * a.key_stride, a.width, a.near + i * a.width);
      }
      here = a.near;
      stride = a.width;
    }
    score_few<1>(a.rows.count, {here}, stride, a.width, a.queries, a.weights + key, key_block);
    key += 16;
  }
}

TRILITHON_INLINE void attend_block_by_keys(const Attention& a, const Partial& to, int64_t first, int64_t count, const KeyRun* runs,
                                           int64_t run_count, bool fresh) {
  const int64_t row = a.rows.first_seeing(first);
  if (row == a.rows.count) return;
  score_by_keys(a, count, runs);
  soften_few(a.weights, key_block, a.rows.count, count, a.rows.limits, first, fresh, to.top, to.total, a.factors);
  if (!fresh) rescale(a, to, row, 0);
  for (int64_t i = 0; i < run_count; ++i) {
    add_seen(a.rows, row, ARows{a.weights, key_block}, first, runs[i], runs[i].values, a.value_stride, a.value_width, to.out,
             fresh && i == 0 ? Start::zero : Start::resume);
  }
}

// Adds a block of keys, positions [first, first + count), to what the rows have gathered. `fresh`: it is the first of its segment.
TRILITHON_INLINE void attend_block(const Attention& a, const Partial& to, int64_t first, int64_t count, const KeyRun* runs,
                                   int64_t run_count, bool fresh) {
  if (a.by_keys) return attend_block_by_keys(a, to, first, count, runs, run_count, fresh);
  const Rows& rows = a.rows;
  const int64_t row = rows.first_seeing(first);
  if (row == rows.count) return;
  const int64_t lane_begin = row / panel_columns * panel_columns;
  for (int64_t i = 0; i < run_count; ++i) {
    deep_product(runs[i].count, rows.lanes - lane_begin, a.width, ARows{runs[i].keys, a.key_stride},
                 BPanels{a.queries, a.width}.at_column(lane_begin), a.weights + runs[i].offset * rows.lanes + lane_begin, rows.lanes);
  }
  for (int64_t lane = lane_begin; lane < rows.lanes; lane += 16) {
    const I seen = isub(iload(rows.limits + lane), iset(static_cast<int32_t>(first)));
    float* scores = a.weights + lane;
    if (rows.limits[lane] >= first + count) {
      soften<false>(scores, rows.lanes, count, seen, fresh, to.top + lane, to.total + lane, a.factors + lane);
    } else {
      soften<true>(scores, rows.lanes, count, seen, fresh, to.top + lane, to.total + lane, a.factors + lane);
    }
    if (!fresh) rescale(a, to, row, lane);
  }
  for (int64_t i = 0; i < run_count; ++i) {
    add_seen(rows, row, AColumns{a.weights, rows.lanes}, first, runs[i], runs[i].values, a.value_stride, a.value_width, to.out,
             fresh && i == 0 ? Start::zero : Start::resume);
  }
}

// The keys at positions [begin, end) of one segment. fill(first, count, runs) says where a block's keys lie, returns how many runs.
template <typename Fill>
TRILITHON_INLINE void attend_segment(const Attention& a, const Partial& to, int64_t begin, int64_t end, Fill fill) {
  KeyRun runs[key_block];
  for (int64_t first = begin; first < end; first += key_block) {
    const int64_t count = at_most(end - first, key_block);
    const int64_t run_count = fill(first, count, runs);
    attend_block(a, to, first, count, runs, run_count, first == begin);
  }
}

// Appends the segment that begins at position `begin` to those before it, for the rows that see any of it.
TRILITHON_INLINE void append_segment(const Attention& a, const Partial& all, const Partial& part, int64_t begin) {
  const Rows& rows = a.rows;
  const int64_t row = rows.first_seeing(begin);
  for (int64_t lane = row / 16 * 16; lane < rows.lanes; lane += 16) {
    const M sees = igt(iload(rows.limits + lane), iset(static_cast<int32_t>(begin)));
    const F before = load(all.top + lane), here = load(part.top + lane), highest = max(before, here);
    const F keep = exp(sub(before, highest)), take = exp(sub(here, highest));
    store(a.factors + lane, keep);
    store(a.factors + rows.lanes + lane, take);
    store(all.top + lane, select(sees, highest, before));
    const F total = load(all.total + lane);
    store(all.total + lane, select(sees, fma(total, keep, mul(load(part.total + lane), take)), total));
  }
  for (int64_t r = row; r < rows.count; ++r) {
    const F keep = set(a.factors[r]), take = set(a.factors[rows.lanes + r]);
    float* sums = all.out + r * a.value_width;
    const float* more = part.out + r * a.value_width;
    for_lanes(a.value_width,
              [&](int64_t i, int64_t n) { store_n(sums + i, n, fma(load_n(sums + i, n), keep, mul(load_n(more + i, n), take))); });
  }
}

// All keys that the rows see, into `all`; `part` is room for one segment.
template <typename Fill>
TRILITHON_INLINE void attend(const Attention& a, const Partial& all, const Partial& part, Fill fill) {
  const int64_t end = a.rows.limits[a.rows.count - 1];
  for (int64_t begin = 0; begin < end; begin += key_segment) {
    attend_segment(a, begin == 0 ? all : part, begin, at_most(begin + key_segment, end), fill);
    if (begin > 0) append_segment(a, all, part, begin);
  }
}

// Divides by the sums: out_of(r) is where row r goes, lse_of(r) where its log-sum-exp goes, or null.
template <typename OutOf, typename LseOf>
TRILITHON_INLINE void finish(const Attention& a, const Partial& all, OutOf out_of, LseOf lse_of) {
  for (int64_t lane = 0; lane < a.rows.lanes; lane += 16) store(a.factors + lane, add(load(all.top + lane), log(load(all.total + lane))));
  for (int64_t r = 0; r < a.rows.count; ++r) {
    const F total = set(all.total[r]);
    const float* sums = all.out + r * a.value_width;
    float* out = out_of(r);
    for_lanes(a.value_width, [&](int64_t i, int64_t n) { store_n(out + i, n, div(load_n(sums + i, n), total)); });
    float* lse = lse_of(r);
    if (lse != nullptr) *lse = a.factors[r];
  }
}

KERNELS_END
