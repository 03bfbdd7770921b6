// OpEntry: one callable of an op, described once.
//
// An op declares a struct of arguments per entry (`Forward`, `Backward`) with a `visit` method that lists every argument
// with its kind, accepted element types and shape in words. From that one list come the conversion of JavaScript
// arguments, the generic checks, the typed face and the harness.
#pragma once

#include <vector>

#include "include/status.h"
#include "include/tensor-view.h"

namespace trilithon {

class Runtime;

enum class ArgKind : uint8_t { input, output, inout, number, integer, flag };

// What an argument may be beyond a tensor without gaps that is there and has rows.
enum ArgFlags : unsigned {
  plain = 0,
  optional = 1,        // may be left out; the view's `present()` says
  strided_rows = 2,    // the first dim may have gaps (a slice of columns); each row has none
  maybe_empty = 4,     // may have zero rows
  may_alias = 8,       // an output and an input that may be the very same memory: same start, shape and strides
  strided_heads = 16,  // of [tokens, heads, width]: tokens and heads may have gaps (a slice of each head); the width has none
  any_strides = 32,    // any strides >= 0 (transposed, repeated by a stride of 0); an output has no two elements in one place
};

struct ArgSpec {
  const char* name;
  ArgKind kind;
  DTypeSet dtypes;    // of tensors
  const char* shape;  // of tensors, in words: "[tokens, width]"
  unsigned flags;

  bool is_tensor() const { return kind <= ArgKind::inout; }
  bool is_output() const { return kind == ArgKind::output || kind == ArgKind::inout; }
  bool has(ArgFlags flag) const { return (flags & flag) != 0; }
};

struct ArgValue {
  TensorView tensor;
  double number = 0;
  int64_t integer = 0;  // of an integer, or 0 and 1 of a flag
};

struct OpEntry {
  const char* op;       // the folder: "rms-norm"
  const char* name;     // "rms-norm.forward"
  const char* summary;  // one sentence
  std::vector<ArgSpec> args;
  Status (*run)(const OpEntry& entry, const ArgValue* values, Runtime& runtime);

  // Position of an argument, or -1.
  int find(const char* arg_name) const;
};

// Everything that can be checked from the specification alone: presence, element types, gaps, empty tensors, outputs that
// overlap other arguments, numbers that are not finite.
Status check_values(const OpEntry& entry, const ArgValue* values);

using OpRegistry = std::vector<OpEntry>;

// Every op of this build, in the order of ops/list.txt.
const OpRegistry& all_ops();

// Null when there is none of that name.
const OpEntry* find_op(const char* name);

// Collects the specification from a `visit` method.
struct SpecVisitor {
  std::vector<ArgSpec>& specs;
  void input(const char* name, TensorView&, DTypeSet dtypes, const char* shape, unsigned flags = plain) {
    specs.push_back({name, ArgKind::input, dtypes, shape, flags});
  }
  void output(const char* name, TensorView&, DTypeSet dtypes, const char* shape, unsigned flags = plain) {
    specs.push_back({name, ArgKind::output, dtypes, shape, flags});
  }
  void inout(const char* name, TensorView&, DTypeSet dtypes, const char* shape, unsigned flags = plain) {
    specs.push_back({name, ArgKind::inout, dtypes, shape, flags});
  }
  void number(const char* name, double&) { specs.push_back({name, ArgKind::number, {}, "", plain}); }
  void integer(const char* name, int64_t&) { specs.push_back({name, ArgKind::integer, {}, "", plain}); }
  void flag(const char* name, bool&) { specs.push_back({name, ArgKind::flag, {}, "", plain}); }
};

// Fills a struct of arguments from values in the same order.
struct FillVisitor {
  const ArgValue* next;
  void input(const char*, TensorView& view, DTypeSet, const char*, unsigned = plain) { view = (next++)->tensor; }
  void output(const char*, TensorView& view, DTypeSet, const char*, unsigned = plain) { view = (next++)->tensor; }
  void inout(const char*, TensorView& view, DTypeSet, const char*, unsigned = plain) { view = (next++)->tensor; }
  void number(const char*, double& value) { value = (next++)->number; }
  void integer(const char*, int64_t& value) { value = (next++)->integer; }
  void flag(const char*, bool& value) { value = (next++)->integer != 0; }
};

// `Args` has `op`, `name`, `summary`, `visit`, and a function `Status run(const Args&, Runtime&)` in its namespace.
template <typename Args>
void add_entry(OpRegistry& registry) {
  OpEntry entry{Args::op, Args::name, Args::summary, {}, nullptr};
  Args args;
  SpecVisitor specs{entry.args};
  args.visit(specs);
  entry.run = [](const OpEntry& self, const ArgValue* values, Runtime& runtime) -> Status {
    if (Status status = check_values(self, values); !status.ok()) return status;
    Args filled;
    FillVisitor fill{values};
    filled.visit(fill);
    return run(filled, runtime);
  };
  registry.push_back(std::move(entry));
}

}  // namespace trilithon
