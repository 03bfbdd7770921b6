// Gradients of softmax attention, in the pieces that attention and MLA attention share. Nothing is added atomically: gradients of
// queries are summed over keys by one task each, gradients of keys over queries by one task each, and both recompute the weights.
//
//     weight = e^(score - lse)     d_score = weight * (d_out · value - delta)     delta = out · d_out
//     d_query = scale * Σ_keys d_score key      d_key = Σ_queries d_score (scale * query)      d_value = Σ_queries weight d_out
//
// ORDER: each sum is one fma chain in ascending order: over keys for d_query, over queries (tokens, within a token heads) for d_key
// and d_value. Products · are fma chains over the width. Pairs that do not see each other are left out.
#pragma once

#include "isa/attend.h"

KERNELS_BEGIN

// d_score from weight and d_out · value.
TRILITHON_INLINE F slope(F weight, F d_weight, F delta) { return mul(weight, sub(d_weight, delta)); }

// Rows of queries that gather their gradient. Lanes run along rows.
struct QueryGradient {
  Rows rows;
  int64_t width, value_width;
  float* queries;    // panels of scaled queries
  float* d_out;      // panels
  float* lse;        // [lanes]
  float* delta;      // [lanes]
  float* weights;    // [key_block, lanes]
  float* d_weights;  // [key_block, lanes]
  float* sums;       // [rows, width]

  static QueryGradient carve(Carver& carver, int64_t rows, int64_t width, int64_t value_width) {
    const int64_t lanes = round_up(rows, 16), panels = round_up(rows, panel_columns);
    QueryGradient g{};
    g.rows = {rows, lanes, carver.take<int32_t>(lanes)};
    g.width = width;
    g.value_width = value_width;
    g.queries = carver.take(panels * width);
    g.d_out = carver.take(panels * value_width);
    g.lse = carver.take(lanes);
    g.delta = carver.take(lanes);
    g.weights = carver.take(key_block * lanes);
    g.d_weights = carver.take(key_block * lanes);
    g.sums = carver.take(rows * width);
    return g;
  }
};

// Keys at positions [first, first + count), count <= key_block, one stride apart.
TRILITHON_INLINE void gather_query_gradient(const QueryGradient& g, int64_t first, int64_t count, const float* keys, int64_t key_stride,
                                            const float* values, int64_t value_stride) {
  const Rows& rows = g.rows;
  const int64_t row = rows.first_seeing(first);
  if (row == rows.count) return;
  const int64_t lane_begin = row / panel_columns * panel_columns, lanes = rows.lanes - lane_begin;
  deep_product(count, lanes, g.width, ARows{keys, key_stride}, BPanels{g.queries, g.width}.at_column(lane_begin), g.weights + lane_begin,
               rows.lanes);
  deep_product(count, lanes, g.value_width, ARows{values, value_stride}, BPanels{g.d_out, g.value_width}.at_column(lane_begin),
               g.d_weights + lane_begin, rows.lanes);
  for (int64_t lane = lane_begin; lane < rows.lanes; lane += 16) {
    const F lse = load(g.lse + lane), delta = load(g.delta + lane);
    for (int64_t i = 0; i < count; ++i) {
      float* at = g.weights + i * rows.lanes + lane;
      store(at, slope(exp(sub(load(at), lse)), load(g.d_weights + i * rows.lanes + lane), delta));
    }
  }
  add_seen(rows, row, AColumns{g.weights, rows.lanes}, first, {keys, values, 0, count}, keys, key_stride, g.width, g.sums,
           first == 0 ? Start::zero : Start::resume);
}

// A block of keys that gathers its gradients. Lanes run along keys.
struct KeyGradient {
  int64_t first, count;  // positions [first, first + count), count <= key_block
  int64_t width, value_width;
  int64_t value_depth;  // of the panels of values: their width, or that of the rows which they begin
  float* keys;          // panels
  float* values;        // panels
  float* d_keys;        // [key_block, width]
  float* d_values;      // [key_block, value_width]
  // Query rows of one step.
  int64_t room;
  int32_t* limits;   // [room] keys that a row sees; do not fall
  float* queries;    // [room, width] scaled
  float* d_out;      // [room, value_width]
  float* lse;        // [room]
  float* delta;      // [room]
  float* weights;    // [room, key_block]
  float* d_weights;  // [room, key_block]

  static KeyGradient carve(Carver& carver, int64_t room, int64_t width, int64_t value_width) {
    KeyGradient g{};
    g.width = width;
    g.value_width = value_width;
    g.value_depth = value_width;
    g.keys = carver.take(key_block * width);
    g.values = carver.take(key_block * value_width);
    g.d_keys = carver.take(key_block * width);
    g.d_values = carver.take(key_block * value_width);
    g.room = room;
    g.limits = carver.take<int32_t>(room);
    g.queries = carver.take(room * width);
    g.d_out = carver.take(room * value_width);
    g.lse = carver.take(room);
    g.delta = carver.take(room);
    g.weights = carver.take(room * key_block);
    g.d_weights = carver.take(room * key_block);
    return g;
  }
};

// sums[key] += Σ weights[row, key] · vectors[row] over the rows that see the key, in ascending order. The keys stand at positions
// [first, first + count); row r sees those below limits[r], which do not fall.
TRILITHON_INLINE void add_seeing(const int32_t* limits, int64_t rows, int64_t first, int64_t count, const float* weights,
                                 const float* vectors, int64_t width, float* sums) {
  const auto seeing = [&](int64_t position) {
    int64_t row = 0;
    while (row < rows && limits[row] <= position) ++row;
    return row;
  };
  const AColumns left{weights, key_block};
  const BRows right{vectors, width};
  const int64_t whole = seeing(first + count - 1);
  if (whole > 0) {
    for (int64_t begin = 0; begin < count; begin += tile_rows) {
      const int64_t end = at_most(begin + tile_rows, count), common = seeing(first + end - 1);
      for (int64_t key = begin; key < end - 1; ++key) {
        const int64_t row = seeing(first + key);
        if (row < common) {
          block_product(1, width, common - row, left.at_row(key).at_k(row), right.at_k(row), sums + key * width, width, Start::resume);
        }
      }
      if (common < whole) {
        block_product(end - begin, width, whole - common, left.at_row(begin).at_k(common), right.at_k(common), sums + begin * width, width,
                      Start::resume);
      }
    }
  }
  if (whole < rows) block_product(count, width, rows - whole, left.at_k(whole), right.at_k(whole), sums, width, Start::resume);
}

// Adds what `rows` rows, already in place, contribute.
TRILITHON_INLINE void gather_key_gradient(const KeyGradient& g, int64_t rows) {
  const int64_t lanes = round_up(g.count, 16);
  deep_product(rows, lanes, g.width, ARows{g.queries, g.width}, BPanels{g.keys, g.width}, g.weights, key_block);
  deep_product(rows, lanes, g.value_width, ARows{g.d_out, g.value_width}, BPanels{g.values, g.value_depth}, g.d_weights, key_block);
  for (int64_t r = 0; r < rows; ++r) {
    const F lse = set(g.lse[r]), delta = set(g.delta[r]);
    for (int64_t lane = 0; lane < lanes; lane += 16) {
      float* weight = g.weights + r * key_block + lane;
      float* d_weight = g.d_weights + r * key_block + lane;
      const F p = exp(sub(load(weight), lse));
      store(weight, p);
      store(d_weight, slope(p, load(d_weight), delta));
    }
  }
  add_seeing(g.limits, rows, g.first, g.count, g.weights, g.d_out, g.value_width, g.d_values);
  add_seeing(g.limits, rows, g.first, g.count, g.d_weights, g.queries, g.width, g.d_keys);
}

KERNELS_END
