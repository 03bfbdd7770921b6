// Operands of block_product in the packed forms of isa/gemm-tile.h. Packing moves values and changes none.
#pragma once

#include "isa/gemm-tile.h"
#include "isa/transpose.h"

KERNELS_BEGIN

TRILITHON_INLINE int64_t at_most(int64_t value, int64_t limit) { return value < limit ? value : limit; }

// to[i * width + r] = rows[r * stride + i] for i < k and r < count <= 16, and 0 for the other lanes up to 16: each step writes
// sixteen lanes from `to + i * width`, so with a smaller width the surplus lanes are overwritten by the next step, and the last
// step needs 16 - width elements of room behind it.
TRILITHON_INLINE void transpose_rows(int64_t count, int64_t k, const float* rows, int64_t stride, float* to, int64_t width) {
  for (int64_t i = 0; i < k; i += 16) {
    const int64_t n = at_most(k - i, 16);
    F v[16];
    if (n == 16 && count == 16) {
#pragma GCC unroll 16
      for (int r = 0; r < 16; ++r) v[r] = load(rows + r * stride + i);
    } else {
#pragma GCC unroll 16
      for (int r = 0; r < 16; ++r) v[r] = r < count ? load_n(rows + r * stride + i, n) : zero();
    }
    transpose(v);
    if (n == 16) {
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) store(to + (i + j) * width, v[j]);
    } else {
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) {
        if (j < n) store(to + (i + j) * width, v[j]);
      }
    }
  }
}

// Floats that pack_a_panels writes.
TRILITHON_INLINE int64_t a_panels_size(int64_t m, int64_t k) { return row_tiles(m) * tile_rows * k + 16; }

// A[m, k] with rows `stride` apart, as APanels{to, k} reads it.
inline void pack_a_panels(int64_t m, int64_t k, ARows a, float* to) {
  for (int64_t tile = 0; tile < row_tiles(m); ++tile) {
    const int64_t row = tile_begin(m, tile);
    transpose_rows(tile_begin(m, tile + 1) - row, k, a.data + row * a.stride, a.stride, to + tile * tile_rows * k, tile_rows);
  }
}

// How deep the panels of pack_a_columns are: the last step of a tile writes a whole vector.
TRILITHON_INLINE int64_t a_columns_depth(int64_t k) { return k + (15 / tile_rows); }

// A[m, k] whose columns are `stride` apart, as APanels{to, a_columns_depth(k)} reads it; to: a_panels_size(m, that depth).
inline void pack_a_columns(int64_t m, int64_t k, AColumns a, float* to) {
  const int64_t depth = a_columns_depth(k);
  // A few columns at a time over all tiles, so that columns are read in long pieces. The surplus lanes of a step are
  // overwritten by the next one of the same tile.
  for (int64_t i = 0; i < k; i += 8) {
    for (int64_t tile = 0; tile < row_tiles(m); ++tile) {
      const int64_t row = tile_begin(m, tile), count = m - row;
      float* const panel = to + tile * tile_rows * depth;
      for (int64_t j = i; j < k && j < i + 8; ++j) {
        const float* column = a.data + j * a.stride + row;
        store(panel + j * tile_rows, count >= 16 ? load(column) : load_n(column, count));
      }
    }
  }
}

// One panel of BPanels from `columns` <= 32 rows of k elements, `stride` apart.
inline void pack_b_panel(int64_t columns, int64_t k, const float* rows, int64_t stride, float* to) {
  for (int64_t lane = 0; lane < panel_columns; lane += 16) {
    const int64_t count = columns - lane;
    transpose_rows(count < 0 ? 0 : at_most(count, 16), k, rows + lane * stride, stride, to + lane, panel_columns);
  }
}

// One panel of BPanels from k rows of `columns` <= 32 elements, `stride` apart.
inline void copy_b_panel(int64_t columns, int64_t k, const float* rows, int64_t stride, float* to) {
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t lane = 0; lane < panel_columns; lane += 16) {
      if (columns >= panel_columns) {
        store(to + i * panel_columns + lane, load(rows + i * stride + lane));
      } else {
        store(to + i * panel_columns + lane, load_n(rows + i * stride + lane, columns - lane));
      }
    }
  }
}

KERNELS_END
