// Shape checks in words. An op names its dims once; the first use of a name binds it, later uses must agree.
//
//   Check check(Forward::name);
//   Dim tokens{"tokens"}, width{"width"};
//   check.shape("x", a.x, {&tokens, &width});
//   check.shape("weight", a.weight, {&width});
//   if (!check.ok()) return check.status();
#pragma once

#include <initializer_list>
#include <string>

#include "include/status.h"
#include "include/tensor-view.h"

namespace trilithon {

struct Dim {
  const char* name = "";
  int64_t value = -1;  // -1 until bound
  const char* bound_by = "";

  explicit Dim(const char* dim_name) : name(dim_name) {}
  Dim(const char* dim_name, int64_t fixed) : name(dim_name), value(fixed) {}
  operator int64_t() const { return value; }
};

std::string shape_text(const TensorView& view);
std::string strides_text(const TensorView& view);
std::string number_text(double value);

class Check {
 public:
  explicit Check(const char* op) : op_(op) {}

  bool ok() const { return status_.ok(); }
  Status status() { return std::move(status_); }

  // The view's dims must be these. Left-out optional tensors pass.
  void shape(const char* argument, const TensorView& view, std::initializer_list<Dim*> dims);

  // The view's dims must be those of `other`, which the caller knows as `other_name`. Left-out optional tensors pass.
  void same_shape(const char* argument, const TensorView& view, const char* other_name, const TensorView& other);

  // Any other condition, stated as what was expected.
  void that(bool condition, const char* argument, const std::string& expected, const std::string& given);

 private:
  const char* op_;
  Status status_;
};

}  // namespace trilithon
