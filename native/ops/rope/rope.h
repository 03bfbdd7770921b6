// Rotary position embedding: pairs of each head turned by an angle that grows with the position. README.md has the mathematics.
#pragma once

#include "include/kernels.h"
#include "include/op.h"

namespace trilithon::rope {

// Positions beyond this are refused: as floats they lie in the range where isa/math.h is accurate for angles up to them.
inline constexpr int64_t largest_position = 1 << 20;

struct Tables {
  static constexpr const char* op = "rope";
  static constexpr const char* name = "rope.tables";
  static constexpr const char* summary = "cos and sin of position * inverse_frequency, each times scale.";

  TensorView positions, inverse_frequencies, cosines, sines;
  double scale = 1;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("positions", positions, only(DType::i32), "[tokens]");
    v.input("inverse_frequencies", inverse_frequencies, floats, "[half]");
    v.output("cosines", cosines, floats, "[tokens, half]");
    v.output("sines", sines, floats, "[tokens, half]");
    v.number("scale", scale);
  }
};

struct Forward {
  static constexpr const char* op = "rope";
  static constexpr const char* name = "rope.forward";
  static constexpr const char* summary = "Turns the first 2 * half elements of each head by the angles of its token; the rest is copied.";

  TensorView x, cosines, sines, y;
  bool interleaved = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "[tokens, heads, width]", strided_heads | may_alias);
    v.input("cosines", cosines, floats, "[tokens, half]");
    v.input("sines", sines, floats, "[tokens, half]");
    v.output("y", y, floats, "[tokens, heads, width]", strided_heads | may_alias);
    v.flag("interleaved", interleaved);
  }
};

struct Backward {
  static constexpr const char* op = "rope";
  static constexpr const char* name = "rope.backward";
  static constexpr const char* summary = "Gradient of x: the gradient of y turned back by the same angles.";

  TensorView d_y, cosines, sines, d_x;
  bool interleaved = false;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("d_y", d_y, floats, "[tokens, heads, width]", strided_heads | may_alias);
    v.input("cosines", cosines, floats, "[tokens, half]");
    v.input("sines", sines, floats, "[tokens, half]");
    v.output("d_x", d_x, floats, "[tokens, heads, width]", strided_heads | may_alias);
    v.flag("interleaved", interleaved);
  }
};

Status run(const Tables& args, Runtime& runtime);
Status run(const Forward& args, Runtime& runtime);
Status run(const Backward& args, Runtime& runtime);

// `direction` is 1 for the forward and -1 for the backward entry.
template <typename T>
void tables_reference(const Tables& args);
template <typename T>
void turn_reference(const TensorView& x, const TensorView& cosines, const TensorView& sines, const TensorView& y, bool interleaved,
                    int direction);

struct TablesParams {
  const int32_t* positions;
  const float* inverse_frequencies;
  float* cosines;
  float* sines;
  int64_t half;
  float scale;
};

struct TurnParams {
  const float* x;
  const float* cosines;
  const float* sines;
  float* y;
  int64_t heads, width, half;
  int64_t x_token_stride, x_head_stride, y_token_stride, y_head_stride;
  bool interleaved, back;
};

struct Kernels {
  void (*tables)(const TablesParams& params, int64_t token_begin, int64_t token_end);
  void (*turn)(const TurnParams& params, int64_t token_begin, int64_t token_end);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::rope
