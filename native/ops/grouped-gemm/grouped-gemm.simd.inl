#include "ops/grouped-gemm/grouped-gemm.h"

#include "isa/gemm-block.h"

KERNELS_BEGIN

using namespace grouped_gemm;

void product(const Product& p, const Block& block, float* scratch) { product_block(p, block, scratch); }

void pack(const PackParams& p, int64_t panel_begin, int64_t panel_end) {
  const int64_t panels = divide_up(p.backward ? p.k : p.n, panel_columns), depth = p.backward ? p.n : p.k;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t expert = panel / panels, own = panel % panels;
    pack_weight(p.weight + expert * p.n * p.k, p.k, p.n, p.k, p.backward, p.packed + expert * panels * depth * panel_columns, own, own + 1);
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(grouped_gemm, (product, pack))
