// Embedding: rows of a table by token id. README.md has the mathematics.
#pragma once

#include "include/kernels.h"
#include "include/op.h"

namespace trilithon::embedding {

struct Forward {
  static constexpr const char* op = "embedding";
  static constexpr const char* name = "embedding.forward";
  static constexpr const char* summary = "y[t] = table[ids[t]].";

  TensorView ids, table, y;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("ids", ids, only(DType::i32), "[tokens]");
    v.input("table", table, floats, "[vocabulary, width]", strided_rows);
    v.output("y", y, floats, "[tokens, width]", strided_rows);
  }
};

struct Backward {
  static constexpr const char* op = "embedding";
  static constexpr const char* name = "embedding.backward";
  static constexpr const char* summary = "Gradient of the table: rows of d_y summed by id, in the order of the tokens.";

  TensorView d_y, ids, d_table;
  bool accumulate = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_y", d_y, floats, "[tokens, width]", strided_rows);
    v.input("ids", ids, only(DType::i32), "[tokens]");
    v.inout("d_table", d_table, floats, "[vocabulary, width]", strided_rows);
    v.flag("accumulate", accumulate);
  }
};

Status run(const Forward& args, Runtime& runtime);
Status run(const Backward& args, Runtime& runtime);

template <typename T>
void forward_reference(const Forward& args);
template <typename T>
void backward_reference(const Backward& args);

struct ForwardParams {
  const int32_t* ids;
  const float* table;
  float* y;
  int64_t table_stride, y_stride, width;
};

struct BackwardParams {
  const float* d_y;
  const int32_t* ids;
  float* d_table;
  int64_t d_y_stride, d_table_stride, tokens;
};

struct Kernels {
  void (*forward)(const ForwardParams& params, int64_t row_begin, int64_t row_end);
  void (*clear)(const BackwardParams& params, int64_t row_begin, int64_t row_end, int64_t width);
  void (*backward)(const BackwardParams& params, int64_t column_begin, int64_t column_end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::embedding
