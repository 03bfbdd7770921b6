#include "isa/gemm-block.h"
#include "ops/gemm/gemm.h"

KERNELS_BEGIN

using namespace gemm;

void product(const Product& p, const Block& block, float* scratch) { product_block(p, block, scratch); }

void pack(const PackParams& p, int64_t panel_begin, int64_t panel_end) {
  pack_weight(p.weight, p.weight_stride, p.n, p.k, p.backward, p.packed, panel_begin, panel_end);
}

// One chain of additions per column, over the rows in ascending order. Four vectors at a time hide the latency.
void column_sums(const SumParams& p, int64_t column_begin, int64_t column_end) {
  int64_t column = column_begin;
  for (; column + 64 <= column_end; column += 64) {
    F totals[4];
    for (int v = 0; v < 4; ++v) totals[v] = p.accumulate ? load(p.sums + column + 16 * v) : zero();
    for (int64_t row = 0; row < p.count; ++row) {
      for (int v = 0; v < 4; ++v) totals[v] = add(totals[v], load(p.rows + row * p.stride + column + 16 * v));
    }
    for (int v = 0; v < 4; ++v) store(p.sums + column + 16 * v, totals[v]);
  }
  for (; column < column_end; column += 16) {
    const int64_t n = at_most(column_end - column, 16);
    F total = p.accumulate ? load_n(p.sums + column, n) : zero();
    for (int64_t row = 0; row < p.count; ++row) total = add(total, load_n(p.rows + row * p.stride + column, n));
    store_n(p.sums + column, n, total);
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(gemm, (product, pack, column_sums))
