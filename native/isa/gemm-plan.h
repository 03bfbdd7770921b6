// A large matrix product as kernels see it, and how it is cut into blocks for threads. Plain data: no instruction set here.
//
// C = A · B (+ bias), or C continued by it: A [m, k], B [k, n], C [m, n]. The order of every sum is that of isa/gemm-tile.h, one
// chain over k for each element, so where the cuts are never shows in the result.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trilithon {

enum class AForm : uint8_t {
  rows,     // a[r, k] = a[r * stride + k]
  columns,  // a[r, k] = a[k * stride + r]
};

enum class BForm : uint8_t {
  panels,      // packed, `b_stride` k deep: see BPanels
  rows,        // b[k, c] = b[k * stride + c]
  transposed,  // b[k, c] = b[c * stride + k]
};

struct Product {
  const float* a;
  const float* b;
  float* c;
  const float* bias;  // added to each row at the end; may be null
  int64_t a_stride, b_stride, c_stride, k;
  AForm a_form;
  BForm b_form;
  bool accumulate;  // C is continued instead of started from 0
};

// Part of C. Columns start at a multiple of 32.
struct Block {
  int64_t row_begin, row_end, column_begin, column_end;
};

// Sizes of the parts that a thread keeps in its caches: rows of A by depth, depth by columns of B. Multiples of every
// tile's rows and of a panel's columns.
inline constexpr int64_t block_rows = 144;
inline constexpr int64_t block_columns = 512;
inline constexpr int64_t block_depth = 256;

// Scratch memory of one thread for product_block: packed A with room for a tile that is not full, then packed B.
inline constexpr int64_t product_scratch_a = (block_rows + 12) * (block_depth + 16);
inline constexpr size_t product_scratch_bytes = sizeof(float) * (product_scratch_a + block_columns * block_depth);

// Up to so many rows a product is bound by reading B, not by arithmetic.
inline constexpr int64_t few_rows = 12;

// Unnamed, because kernels of every instruction set include this.
namespace {

inline int64_t divide_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

// Shares a product out to threads: a grid of row parts and column parts of nearly equal size.
class ProductCut {
 public:
  ProductCut(int64_t m, int64_t n, int64_t k, BForm b_form, int threads) : m_(m), n_(n), panels_(divide_up(n, 32)) {
    if (b_form == BForm::panels) {
      row_parts_ = divide_up(m, block_rows);
    } else {
      // Each part packs its own columns of B, which pays when it has many rows.
      row_parts_ = divide_up(m, 4 * block_rows);
      column_parts_ = divide_up(n, block_columns);
    }
    if (threads == 1 && m > few_rows) return;
    // Several parts for each thread, because threads do not all run all the time; none so small that handing it out shows.
    const double work = m <= few_rows ? 4.0 * static_cast<double>(n) * static_cast<double>(k)
                                      : 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const int64_t affordable = static_cast<int64_t>(work / smallest_part);
    const int64_t wanted = affordable < 8 * threads ? affordable : 8 * threads;
    while (row_parts_ * column_parts_ < wanted) {
      const int64_t rows = m / row_parts_, panels = panels_ / column_parts_;
      // The longer side is cut, as long as tiles stay full.
      if (panels >= 8 && 32 * panels >= rows) {
        column_parts_ *= 2;
      } else if (rows >= 48) {
        row_parts_ *= 2;
      } else if (panels >= 2) {
        column_parts_ *= 2;
      } else {
        return;
      }
    }
  }

  int64_t parts() const { return row_parts_ * column_parts_; }

  Block block(int64_t part) const {
    const int64_t row = part % row_parts_, column = part / row_parts_;
    const int64_t end = 32 * ((column + 1) * panels_ / column_parts_);
    return {row * m_ / row_parts_, (row + 1) * m_ / row_parts_, 32 * (column * panels_ / column_parts_), end < n_ ? end : n_};
  }

 private:
  // Bytes of B (few rows) or flops.
  static constexpr double smallest_part = 512 * 1024;

  int64_t m_, n_, panels_;
  int64_t row_parts_ = 1, column_parts_ = 1;
};

}  // namespace

}  // namespace trilithon
