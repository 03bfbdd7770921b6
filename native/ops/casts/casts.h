// Storage formats to and from f32, and e4m3 with a scale per block. README.md has formats, rounding and scales.
#pragma once

#include "include/kernels.h"
#include "include/op.h"

namespace trilithon::casts {

inline constexpr DTypeSet small_formats = only(DType::bf16) | only(DType::f16) | only(DType::e4m3) | only(DType::e5m2);

// Columns of a block: a constant of the format, as checkpoints have it. Its rows are 1 or as many.
inline constexpr int64_t block_columns = 128;

struct Narrow {
  static constexpr const char* op = "casts";
  static constexpr const char* name = "casts.narrow";
  static constexpr const char* summary = "y = x in the format of y, rounded to nearest even; 8-bit formats saturate.";

  TensorView x, y;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, only(DType::f32), "any shape", maybe_empty);
    v.output("y", y, small_formats, "as x", maybe_empty);
  }
};

struct Widen {
  static constexpr const char* op = "casts";
  static constexpr const char* name = "casts.widen";
  static constexpr const char* summary = "y = x as f32, exactly.";

  TensorView x, y;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, small_formats, "any shape", maybe_empty);
    v.output("y", y, only(DType::f32), "as x", maybe_empty);
  }
};

struct Quantize {
  static constexpr const char* op = "casts";
  static constexpr const char* name = "casts.quantize";
  static constexpr const char* summary =
      "e4m3 codes of x divided by a scale per block: max(largest magnitude, amax_floor) / 448, or the next power of two.";

  TensorView x, codes, scales;
  int64_t block_rows = 1;
  double amax_floor = 0;
  bool power_of_two = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, only(DType::f32), "[rows, columns]", strided_rows);
    v.output("codes", codes, only(DType::e4m3), "[rows, columns]", strided_rows);
    v.output("scales", scales, only(DType::f32), "[ceil(rows / block_rows), ceil(columns / 128)]");
    v.integer("block_rows", block_rows);
    v.number("amax_floor", amax_floor);
    v.flag("power_of_two", power_of_two);
  }
};

struct Dequantize {
  static constexpr const char* op = "casts";
  static constexpr const char* name = "casts.dequantize";
  static constexpr const char* summary = "y = code * scale of its block.";

  TensorView codes, scales, y;
  int64_t block_rows = 1;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("codes", codes, only(DType::e4m3), "[rows, columns]", strided_rows);
    v.input("scales", scales, only(DType::f32), "[ceil(rows / block_rows), ceil(columns / 128)]");
    v.output("y", y, only(DType::f32), "[rows, columns]", strided_rows);
    v.integer("block_rows", block_rows);
  }
};

Status run(const Narrow& args, Runtime& runtime);
Status run(const Widen& args, Runtime& runtime);
Status run(const Quantize& args, Runtime& runtime);
Status run(const Dequantize& args, Runtime& runtime);

void narrow_reference(const Narrow& args);
void widen_reference(const Widen& args);
void quantize_reference(const Quantize& args);
void dequantize_reference(const Dequantize& args);

struct BlockParams {
  const float* x;  // quantize
  uint8_t* codes;  // written by quantize, read by dequantize
  float* scales;   // as codes
  float* y;        // dequantize
  int64_t x_stride, codes_stride, y_stride;
  int64_t rows, columns, block_rows;
  int64_t blocks_across;  // blocks side by side
  float amax_floor;
  bool power_of_two;
};

struct Kernels {
  void (*narrow)(DType format, const float* x, void* y, int64_t begin, int64_t end);
  void (*widen)(DType format, const void* x, float* y, int64_t begin, int64_t end);
  // Blocks are numbered row of blocks by row of blocks.
  void (*quantize)(const BlockParams& params, int64_t block_begin, int64_t block_end);
  void (*dequantize)(const BlockParams& params, int64_t block_begin, int64_t block_end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::casts
