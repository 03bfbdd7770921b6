// Matrix products in registers: C = A · B, or C continued by A · B, for blocks of any size. Used by gemm, grouped-gemm,
// attention, the indexer and the LM head, so that there is one order of summation for all of them.
//
// ORDER. Each element of C is one chain of fma over k in ascending order, starting from 0 or, resumed, from the C that is there:
//
//     c = resume ? c : 0;   for k = 0, 1, 2, ...: c = fma(a[row, k], b[k, column], c)
//
// Nothing else decides the bits: not the shape, not the position of the element in a tile, not how operands are stored, not the
// instruction set. Therefore
//   - one row alone (decode) equals the same row in a batch of thousands;
//   - k may be cut anywhere: block_product over [0, 100) and then, resumed, over [100, 250) equals one over [0, 250). C passes
//     through memory between the two without rounding, because it is kept in fp32;
//   - m and n may be cut anywhere and shared between threads in any way.
// A product that is summed in another order by design (a tree over blocks of keys, say) calls block_product once per part,
// from zero, and combines the parts itself at boundaries that are constants of its op.
//
// OPERANDS. m rows, n columns, k summed. Strides count elements.
//
//     ARows    {data, stride}   a[r, k] = data[r * stride + k]     activations [tokens, width]; queries [rows, head_dim]
//     AColumns {data, stride}   a[r, k] = data[k * stride + r]     the transposed left factor: d_yᵀ in d_W = d_yᵀ · x
//     APanels  {data, depth}    packed by pack_a_panels: tile_rows rows side by side, [tile][depth][tile_rows]
//     BRows    {data, stride}   b[k, c] = data[k * stride + c]     values [keys, head_dim]; W [n, k] in d_x = d_y · W
//     BPanels  {data, depth}    packed: 32 columns side by side, [panel][depth][32], absent columns of the last panel 0
//
// `depth` is how many k a panel holds; a product may use fewer (k <= depth). An operand is moved by its members
// .at_row(row) (A; of APanels in whole tiles only, so use it through block_product), .at_column(column) (B; of BPanels a
// multiple of 32) and .at_k(k) (all). B whose columns lie far apart (Wᵀ of a weight [n, k], keys [key, head_dim] in q · kᵀ)
// has to be packed: the lanes run along n.
//
//     block_product(m, n, k, a, b, c, c_stride, Start::zero or Start::resume);
//
// c is [m, n] with c_stride elements from row to row; exactly m * n elements of it are written, and read only when resumed. It
// may be an output or scratch of the thread. Nothing is read outside a and b: rows and columns beyond m and n need not exist
// (absent lanes are masked), except that BPanels are read 32 columns wide.
//
//     pack_a_panels(m, k, ARows, to)            to: a_panels_size(m, k) floats, [tile][k][tile_rows]
//     pack_b_panel(columns, k, rows, stride, to)        32 * k floats from b[k, c] = rows[c * stride + k]   (transposes)
//     copy_b_panel(columns, k, rows, stride, to)        32 * k floats from b[k, c] = rows[k * stride + c]
//
// One call of pack_b_panel or copy_b_panel makes one panel, columns <= 32. They are in isa/gemm-pack.h.
//
// EXAMPLE: scores of 64 queries and 128 keys, causal attention, one head; scratch of the thread holds both arrays.
//
//     for (int64_t j = 0; j < 128; j += 32) pack_b_panel(32, head_dim, keys + j * key_stride, key_stride, panels + j * head_dim);
//     block_product(64, 128, head_dim, ARows{queries, query_stride}, BPanels{panels, head_dim}, scores, 128, Start::zero);
//     ... soften scores in place ...
//     block_product(64, head_dim, 128, ARows{scores, 128}, BRows{values, value_stride}, out, out_stride, Start::resume);
//
// SPEED. A tile is tile_rows x tile_vectors registers of C, all in flight, which hides the latency of fma: 12 x 32 floats with
// AVX-512, 6 x 16 with AVX2. Rows are shared out evenly (13 rows are 7 + 6, not 12 + 1). One or two rows take more columns at
// once instead. Best where
//   - a block's k stays near gemm_depth, so that a panel of B (32 columns) and a tile of A fit the first-level cache;
//   - m is several tiles: each panel of B is read once per block from the next cache, then once per tile from the first;
//   - ARows with a stride that is a multiple of 4 KiB and m > 12 is packed first: its rows share cache sets.
// Prepare operands once and use them for many rows or columns: packing costs about as much as 8 columns (A) or 8 rows (B) of
// product. k = 0 gives zeros (or leaves C when resumed).
#pragma once

#include "isa/vec.h"

#define TRILITHON_INLINE_MEMBER inline __attribute__((always_inline))

KERNELS_BEGIN

// Columns of a packed panel of B: a constant of the format, for packed weights are kept in tensors.
constexpr int64_t panel_columns = 32;

// How many k a block of a long product takes at a time. Any value gives the same bits.
constexpr int64_t gemm_depth = 256;

#if defined(TRILITHON_ISA_AVX512)
constexpr int tile_rows = 12;
constexpr int vector_registers = 32;
#elif defined(TRILITHON_ISA_AVX2)
constexpr int tile_rows = 6;
constexpr int vector_registers = 8;
#else
constexpr int tile_rows = 4;
constexpr int vector_registers = 1;
#endif

enum class Start : bool { zero, resume };

// Vectors of sixteen columns that a tile of so many rows takes: enough chains to hide the latency, few enough for the registers.
constexpr int tile_vectors(int rows) {
#if defined(TRILITHON_ISA_AVX512)
  return rows == 1 ? 8 : rows <= 3 ? 4 : 2;
#elif defined(TRILITHON_ISA_AVX2)
  return rows == 1 ? 4 : rows <= 3 ? 2 : 1;
#else
  return rows == 1 ? 2 : 1;
#endif
}

// Narrowest tile, for the columns that are left over.
constexpr int narrow_vectors(int rows) {
#if defined(TRILITHON_ISA_AVX512)
  return rows == 0 ? 0 : 2;
#else
  return rows == 0 ? 0 : 1;
#endif
}

// Tiles that m rows are shared out to, and the first row of one of them.
TRILITHON_INLINE int64_t row_tiles(int64_t m) { return (m + tile_rows - 1) / tile_rows; }
TRILITHON_INLINE int64_t tile_begin(int64_t m, int64_t tile) { return tile * m / row_tiles(m); }

// Holds a value in a register. Without it the compiler reads B from memory again for each row of a low tile.
TRILITHON_INLINE void hold(F& value) {
#if defined(TRILITHON_ISA_AVX512)
  __asm__("" : "+v"(value));
#elif defined(TRILITHON_ISA_AVX2)
  __asm__("" : "+x"(value.a), "+x"(value.b));
#else
  (void)value;
#endif
}

struct ARows {
  const float* data;
  int64_t stride;

  ARows at_row(int64_t row) const { return {data + row * stride, stride}; }
  ARows at_k(int64_t k) const { return {data + k, stride}; }

  // Rows three by three: an address is a base plus 0, 1 or 2 strides, which keeps few registers busy.
  template <int rows>
  struct Cursor {
    const float* base[(rows + 2) / 3];
    int64_t stride;
    TRILITHON_INLINE_MEMBER explicit Cursor(const ARows& a) : stride(a.stride) {
      for (int i = 0; i < (rows + 2) / 3; ++i) base[i] = a.data + 3 * i * a.stride;
    }
    TRILITHON_INLINE_MEMBER float value(int row) const { return base[row / 3][row % 3 * stride]; }
    TRILITHON_INLINE_MEMBER void next() {
      for (int i = 0; i < (rows + 2) / 3; ++i) ++base[i];
    }
  };
  ARows tile(int64_t m, int64_t index) const { return at_row(tile_begin(m, index)); }
};

struct AColumns {
  const float* data;
  int64_t stride;

  AColumns at_row(int64_t row) const { return {data + row, stride}; }
  AColumns at_k(int64_t k) const { return {data + k * stride, stride}; }

  template <int rows>
  struct Cursor {
    const float* position;
    int64_t stride;
    TRILITHON_INLINE_MEMBER explicit Cursor(const AColumns& a) : position(a.data), stride(a.stride) {}
    TRILITHON_INLINE_MEMBER float value(int row) const { return position[row]; }
    TRILITHON_INLINE_MEMBER void next() { position += stride; }
  };
  AColumns tile(int64_t m, int64_t index) const { return at_row(tile_begin(m, index)); }
};

struct APanels {
  const float* data;
  int64_t depth;

  APanels at_k(int64_t k) const { return {data + k * tile_rows, depth}; }

  template <int rows>
  struct Cursor {
    const float* position;
    TRILITHON_INLINE_MEMBER explicit Cursor(const APanels& a) : position(a.data) {}
    TRILITHON_INLINE_MEMBER float value(int row) const { return position[row]; }
    TRILITHON_INLINE_MEMBER void next() { position += tile_rows; }
  };
  APanels tile(int64_t, int64_t index) const { return {data + index * tile_rows * depth, depth}; }
};

struct BRows {
  const float* data;
  int64_t stride;
  static constexpr bool padded = false;

  BRows at_column(int64_t column) const { return {data + column, stride}; }
  BRows at_k(int64_t k) const { return {data + k * stride, stride}; }

  struct Cursor {
    const float* position;
    int64_t stride;
    TRILITHON_INLINE_MEMBER Cursor(const BRows& b, int64_t column) : position(b.data + column), stride(b.stride) {}
    TRILITHON_INLINE_MEMBER const float* vector(int index) const { return position + 16 * index; }
    TRILITHON_INLINE_MEMBER void next() { position += stride; }
  };
};

struct BPanels {
  const float* data;
  int64_t depth;
  static constexpr bool padded = true;

  BPanels at_column(int64_t column) const { return {data + column * depth, depth}; }
  BPanels at_k(int64_t k) const { return {data + k * panel_columns, depth}; }

  // `column` is a multiple of 16. A tile of several vectors starts at a whole panel.
  struct Cursor {
    const float* position;
    int64_t panel_step;
    TRILITHON_INLINE_MEMBER Cursor(const BPanels& b, int64_t column)
        : position(b.data + column / panel_columns * panel_columns * b.depth + column % panel_columns),
          panel_step(panel_columns * b.depth) {}
    TRILITHON_INLINE_MEMBER const float* vector(int index) const { return position + index / 2 * panel_step + index % 2 * 16; }
    TRILITHON_INLINE_MEMBER void next() { position += panel_columns; }
  };
};

// One tile of C: `columns` of its 16 * vectors columns exist. `masked`: the last vector of B must be read through a mask.
template <int rows, int vectors, bool masked, typename A, typename B>
__attribute__((noinline)) static void tile_product(A a, B b, int64_t column, int64_t k, float* c, int64_t c_stride, int64_t columns,
                                                   Start start) {
  typename A::template Cursor<rows> left(a);
  typename B::Cursor right(b, column);
  F sums[rows][vectors];
  if (start == Start::resume) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = load_n(c + r * c_stride + 16 * v, columns - 16 * v);
    }
  } else {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = zero();
    }
  }
  for (int64_t i = 0; i < k; ++i) {
    F b_row[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) b_row[v] = masked ? load_n(right.vector(v), columns - 16 * v) : load(right.vector(v));
    if constexpr (rows > 1 && (rows + 1) * vectors < vector_registers) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) hold(b_row[v]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const F value = set(left.value(r));
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = fma(value, b_row[v], sums[r][v]);
    }
    left.next();
    right.next();
  }
  if (columns >= 16 * vectors) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) store(c + r * c_stride + 16 * v, sums[r][v]);
    }
  } else {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) store_n(c + r * c_stride + 16 * v, columns - 16 * v, sums[r][v]);
    }
  }
}

template <int rows, int vectors, typename A, typename B>
TRILITHON_INLINE void tile_product_of(A a, B b, int64_t column, int64_t k, float* c, int64_t c_stride, int64_t columns, Start start) {
  if (B::padded || columns >= 16 * vectors) {
    tile_product<rows, vectors, false>(a, b, column, k, c, c_stride, columns, start);
  } else {
    tile_product<rows, vectors, true>(a, b, column, k, c, c_stride, columns, start);
  }
}

// One tile of `rows` rows, its count known at run time only.
template <int vectors, typename A, typename B, int rows = tile_rows>
TRILITHON_INLINE void row_tile_product(int64_t count, A a, B b, int64_t column, int64_t k, float* c, int64_t c_stride, int64_t columns,
                                       Start start) {
  if constexpr (rows > 0) {
    if (count == rows) {
      tile_product_of<rows, vectors>(a, b, column, k, c, c_stride, columns, start);
    } else {
      row_tile_product<vectors, A, B, rows - 1>(count, a, b, column, k, c, c_stride, columns, start);
    }
  }
}

// Few rows: more columns at a time, as long as there are so many.
template <int rows, typename A, typename B>
TRILITHON_INLINE void narrow_block_product(int64_t n, int64_t k, A a, B b, float* c, int64_t c_stride, Start start) {
  constexpr int wide = tile_vectors(rows), narrow = narrow_vectors(rows);
  int64_t column = 0;
  for (; column + 16 * wide <= n; column += 16 * wide) {
    tile_product<rows, wide, false>(a, b, column, k, c + column, c_stride, 16 * wide, start);
  }
  for (; column < n; column += 16 * narrow) {
    tile_product_of<rows, narrow>(a, b, column, k, c + column, c_stride, n - column, start);
  }
}

// C[m, n] = A[m, k] · B[k, n], or C continued by it. The order of each sum is described at the top.
template <typename A, typename B>
TRILITHON_INLINE void block_product(int64_t m, int64_t n, int64_t k, A a, B b, float* c, int64_t c_stride, Start start) {
  if (m == 1) return narrow_block_product<1>(n, k, a.tile(1, 0), b, c, c_stride, start);
  if (m == 2) return narrow_block_product<2>(n, k, a.tile(2, 0), b, c, c_stride, start);
  if (m == 3) return narrow_block_product<3>(n, k, a.tile(3, 0), b, c, c_stride, start);
  constexpr int vectors = tile_vectors(tile_rows);
  const int64_t tiles = row_tiles(m);
  for (int64_t column = 0; column < n; column += 16 * vectors) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t row = tile_begin(m, tile);
      row_tile_product<vectors>(tile_begin(m, tile + 1) - row, a.tile(m, tile), b, column, k, c + row * c_stride + column, c_stride,
                                n - column, start);
    }
  }
}

KERNELS_END
