// Element by element: fill, copy, add, multiply, scale and their accumulating forms, over tensors with any strides.
#pragma once

#include "include/kernels.h"
#include "include/op.h"

namespace trilithon::pointwise {

struct Fill {
  static constexpr const char* op = "pointwise";
  static constexpr const char* name = "pointwise.fill";
  static constexpr const char* summary = "y = value.";

  TensorView y;
  double value = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.output("y", y, floats, "any shape", any_strides | maybe_empty);
    v.number("value", value);
  }
};

struct Copy {
  static constexpr const char* op = "pointwise";
  static constexpr const char* name = "pointwise.copy";
  static constexpr const char* summary = "y = x, bit for bit, of any element type and between any strides.";

  TensorView x, y;

  template <typename Visitor>
  void visit(Visitor& v) {
    constexpr DTypeSet every{(1u << dtype_count) - 1};
    v.input("x", x, every, "any shape", any_strides | maybe_empty);
    v.output("y", y, every, "as x", any_strides | maybe_empty);
  }
};

struct Add {
  static constexpr const char* op = "pointwise";
  static constexpr const char* name = "pointwise.add";
  static constexpr const char* summary = "y = a + b; y may be a or b.";

  TensorView a, b, y;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("a", a, floats, "any shape", any_strides | maybe_empty | may_alias);
    v.input("b", b, floats, "as a", any_strides | maybe_empty | may_alias);
    v.output("y", y, floats, "as a", any_strides | maybe_empty | may_alias);
  }
};

struct Multiply {
  static constexpr const char* op = "pointwise";
  static constexpr const char* name = "pointwise.multiply";
  static constexpr const char* summary = "y = a * b; y may be a or b.";

  TensorView a, b, y;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("a", a, floats, "any shape", any_strides | maybe_empty | may_alias);
    v.input("b", b, floats, "as a", any_strides | maybe_empty | may_alias);
    v.output("y", y, floats, "as a", any_strides | maybe_empty | may_alias);
  }
};

struct MultiplyAdd {
  static constexpr const char* op = "pointwise";
  static constexpr const char* name = "pointwise.multiply-add";
  static constexpr const char* summary = "y = a * b + y with one rounding.";

  TensorView a, b, y;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("a", a, floats, "any shape", any_strides | maybe_empty);
    v.input("b", b, floats, "as a", any_strides | maybe_empty);
    v.inout("y", y, floats, "as a", any_strides | maybe_empty);
  }
};

struct Scale {
  static constexpr const char* op = "pointwise";
  static constexpr const char* name = "pointwise.scale";
  static constexpr const char* summary = "y = factor * x; y may be x.";

  TensorView x, y;
  double factor = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "any shape", any_strides | maybe_empty | may_alias);
    v.output("y", y, floats, "as x", any_strides | maybe_empty | may_alias);
    v.number("factor", factor);
  }
};

struct AddScaled {
  static constexpr const char* op = "pointwise";
  static constexpr const char* name = "pointwise.add-scaled";
  static constexpr const char* summary = "y = factor * x + y with one rounding.";

  TensorView x, y;
  double factor = 0;

  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "any shape", any_strides | maybe_empty);
    v.inout("y", y, floats, "as x", any_strides | maybe_empty);
    v.number("factor", factor);
  }
};

Status run(const Fill& args, Runtime& runtime);
Status run(const Copy& args, Runtime& runtime);
Status run(const Add& args, Runtime& runtime);
Status run(const Multiply& args, Runtime& runtime);
Status run(const MultiplyAdd& args, Runtime& runtime);
Status run(const Scale& args, Runtime& runtime);
Status run(const AddScaled& args, Runtime& runtime);

template <typename T>
void fill_reference(const Fill& args);
void copy_reference(const Copy& args);
template <typename T>
void add_reference(const Add& args);
template <typename T>
void multiply_reference(const Multiply& args);
template <typename T>
void multiply_add_reference(const MultiplyAdd& args);
template <typename T>
void scale_reference(const Scale& args);
template <typename T>
void add_scaled_reference(const AddScaled& args);

// Elements in a line, `step` apart.
struct Line {
  float* data;
  int64_t step;
};

struct Kernels {
  void (*fill)(Line y, float value, int64_t count);
  void (*add)(Line a, Line b, Line y, int64_t count);
  void (*multiply)(Line a, Line b, Line y, int64_t count);
  void (*multiply_add)(Line a, Line b, Line y, int64_t count);
  void (*scale)(Line x, Line y, float factor, int64_t count);
  void (*add_scaled)(Line x, Line y, float factor, int64_t count);
};

TRILITHON_DECLARE_KERNELS

}  // namespace trilithon::pointwise
