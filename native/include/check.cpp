#include "include/check.h"

#include <cstdio>

namespace trilithon {
namespace {

std::string list_text(const int64_t* values, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

}  // namespace

std::string shape_text(const TensorView& view) { return list_text(view.shape, view.rank); }
std::string strides_text(const TensorView& view) { return list_text(view.stride, view.rank); }

std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

void Check::shape(const char* argument, const TensorView& view, std::initializer_list<Dim*> dims) {
  if (!ok() || !view.present()) return;
  bool matches = view.rank == static_cast<int>(dims.size());
  int index = 0;
  for (const Dim* dim : dims) {
    if (!matches) break;
    if (dim->value >= 0 && dim->value != view.shape[index]) matches = false;
    ++index;
  }
  if (!matches) {
    std::string expected = "[";
    for (const Dim* dim : dims) {
      if (expected.size() > 1) expected += ", ";
      expected += dim->name;
      if (dim->value >= 0) expected += " " + std::to_string(dim->value);
      if (*dim->bound_by != '\0') expected += std::string(" as in ") + dim->bound_by;
    }
    status_ = invalid_argument(op_, argument, "shape " + expected + "]", shape_text(view));
    return;
  }
  index = 0;
  for (Dim* dim : dims) {
    if (dim->value < 0) {
      dim->value = view.shape[index];
      dim->bound_by = argument;
    }
    ++index;
  }
}

void Check::same_shape(const char* argument, const TensorView& view, const char* other_name, const TensorView& other) {
  if (!ok() || !view.present()) return;
  bool matches = view.rank == other.rank;
  for (int i = 0; matches && i < view.rank; ++i) matches = view.shape[i] == other.shape[i];
  if (!matches) status_ = invalid_argument(op_, argument, "shape " + shape_text(other) + " as in " + other_name, shape_text(view));
}

void Check::that(bool condition, const char* argument, const std::string& expected, const std::string& given) {
  if (ok() && !condition) status_ = invalid_argument(op_, argument, expected, given);
}

}  // namespace trilithon
