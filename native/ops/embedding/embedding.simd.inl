#include "isa/row-reduce.h"
#include "ops/embedding/embedding.h"

KERNELS_BEGIN

using namespace embedding;

void forward(const ForwardParams& p, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* from = p.table + p.ids[row] * p.table_stride;
    float* y = p.y + row * p.y_stride;
    for_lanes(p.width, [&](int64_t i, int64_t n) { store_n(y + i, n, load_n(from + i, n)); });
  }
}

void clear(const BackwardParams& p, int64_t row_begin, int64_t row_end, int64_t width) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    float* d_table = p.d_table + row * p.d_table_stride;
    for_lanes(width, [&](int64_t i, int64_t n) { store_n(d_table + i, n, zero()); });
  }
}

// A thread owns columns, so that no two write one element and each sum runs over the tokens in order.
void backward(const BackwardParams& p, int64_t column_begin, int64_t column_end) {
  for (int64_t t = 0; t < p.tokens; ++t) {
    const float* d_y = p.d_y + t * p.d_y_stride + column_begin;
    float* d_table = p.d_table + p.ids[t] * p.d_table_stride + column_begin;
    for_lanes(column_end - column_begin,
              [&](int64_t i, int64_t n) { store_n(d_table + i, n, add(load_n(d_table + i, n), load_n(d_y + i, n))); });
  }
}

KERNELS_END

TRILITHON_EXPORT_KERNELS(embedding, (forward, clear, backward))
