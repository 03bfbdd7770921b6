// A block of a large product: brings the operands into packed form, part by part, and multiplies them by block_product.
// Used by gemm and grouped-gemm; isa/gemm-plan.h describes the product and cuts it into blocks.
#pragma once

#include "isa/gemm-pack.h"
#include "isa/gemm-plan.h"

KERNELS_BEGIN

// Packs k rows of b, `columns` wide, into panels `k` deep.
inline void pack_b(const Product& p, int64_t k_begin, int64_t k, int64_t column_begin, int64_t columns, float* to) {
  if (p.b_form == BForm::rows) {
    // A few rows at a time over all panels, so that rows are read in long pieces.
    const float* rows = p.b + k_begin * p.b_stride + column_begin;
    for (int64_t i = 0; i < k; i += 8) {
      for (int64_t column = 0; column < columns; column += panel_columns) {
        copy_b_panel(columns - column, at_most(k - i, 8), rows + i * p.b_stride + column, p.b_stride, to + column * k + i * panel_columns);
      }
    }
  } else {
    const float* rows = p.b + column_begin * p.b_stride + k_begin;
    for (int64_t column = 0; column < columns; column += panel_columns) {
      pack_b_panel(columns - column, k, rows + column * p.b_stride, p.b_stride, to + column * k);
    }
  }
}

inline APanels pack_a(const Product& p, int64_t k_begin, int64_t k, int64_t row_begin, int64_t rows, float* to) {
  if (p.a_form == AForm::rows) {
    pack_a_panels(rows, k, ARows{p.a + row_begin * p.a_stride + k_begin, p.a_stride}, to);
    return {to, k};
  }
  pack_a_columns(rows, k, AColumns{p.a + k_begin * p.a_stride + row_begin, p.a_stride}, to);
  return {to, a_columns_depth(k)};
}

inline void add_bias(const float* bias, int64_t rows, int64_t columns, float* c, int64_t c_stride) {
  for (int64_t column = 0; column < columns; column += 16) {
    const int64_t n = at_most(columns - column, 16);
    const F value = load_n(bias + column, n);
    for (int64_t r = 0; r < rows; ++r) store_n(c + r * c_stride + column, n, add(load_n(c + r * c_stride + column, n), value));
  }
}

// Computes one block of C. `scratch` is product_scratch_bytes of the thread. Unless b is packed, the block has at most
// block_columns columns.
inline void product_block(const Product& p, const Block& block, float* scratch) {
  const int64_t rows = block.row_end - block.row_begin, columns = block.column_end - block.column_begin;
  float* const c = p.c + block.row_begin * p.c_stride + block.column_begin;
  float* const a_scratch = scratch;
  float* const b_scratch = scratch + product_scratch_a;
  const bool few = rows <= few_rows && p.a_form == AForm::rows;
  // With few rows nothing of B is used twice, and it is read in the longest possible pieces.
  const bool stream = few && p.b_form == BForm::panels;
  const int64_t k_parts = stream || p.k == 0 ? 1 : (p.k + block_depth - 1) / block_depth;
  const int64_t row_parts = (rows + block_rows - 1) / block_rows;
  for (int64_t part = 0; part < k_parts; ++part) {
    const int64_t k_begin = part * p.k / k_parts, k = (part + 1) * p.k / k_parts - k_begin;
    const Start start = part > 0 || p.accumulate ? Start::resume : Start::zero;
    BPanels b{b_scratch, k};
    if (p.b_form == BForm::panels) {
      b = BPanels{p.b, p.b_stride}.at_column(block.column_begin).at_k(k_begin);
    } else {
      pack_b(p, k_begin, k, block.column_begin, columns, b_scratch);
    }
    for (int64_t r = 0; r < row_parts; ++r) {
      const int64_t row = r * rows / row_parts, m = (r + 1) * rows / row_parts - row;
      float* const c_rows = c + row * p.c_stride;
      if (few) {
        block_product(m, columns, k, ARows{p.a + (block.row_begin + row) * p.a_stride + k_begin, p.a_stride}, b, c_rows, p.c_stride, start);
      } else {
        block_product(m, columns, k, pack_a(p, k_begin, k, block.row_begin + row, m, a_scratch), b, c_rows, p.c_stride, start);
      }
      if (part + 1 == k_parts && p.bias != nullptr) add_bias(p.bias + block.column_begin, m, columns, c_rows, p.c_stride);
    }
  }
}

// Panels [panel_begin, panel_end) of a weight [n, k] with rows `stride` apart: lanes along n for y = x · Wᵀ, or along k for d_x = d_y · W.
inline void pack_weight(const float* weight, int64_t stride, int64_t n, int64_t k, bool backward, float* packed, int64_t panel_begin,
                        int64_t panel_end) {
  const int64_t columns = backward ? k : n, depth = backward ? n : k;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t column = panel * panel_columns, count = at_most(columns - column, panel_columns);
    float* const to = packed + column * depth;
    if (backward) {
      copy_b_panel(count, depth, weight + column, stride, to);
    } else {
      pack_b_panel(count, depth, weight + column * stride, stride, to);
    }
  }
}

KERNELS_END
