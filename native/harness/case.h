// Case: one call of an op entry with named arguments, and what has to hold for it.
//
// An op lists its cases once, in <op>.cases.h; test, bench and grad read the same list. From a case the harness checks:
// every instruction set against the reference in double within `tolerance`; equal bits between instruction sets, thread
// counts and memory placements; nothing written outside the outputs; inputs unchanged; and what `rows`, `accumulates`,
// `gradient` and `property` declare.
#pragma once

#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "harness/random.h"
#include "include/op.h"
#include "pool/runtime.h"

namespace trilithon {

// Values of a tensor, in row-major order.
struct Fill {
  std::function<void(std::vector<double>& values, const std::vector<int64_t>& shape, Random& random)> apply;

  static Fill normal(double mean = 0, double deviation = 1);
  static Fill uniform(double low, double high);
  static Fill constant(double value);
  static Fill integers(int64_t low, int64_t below);  // whole numbers in [low, below)
  static Fill values(std::vector<double> list);      // exactly these
  // Rows of zeros, of subnormals, with one infinity, with one NaN, and ordinary rows between them.
  static Fill special();
  // The integers 0, 1, 2, ... as raw bits of the element type: every code of an 8-bit or 16-bit type.
  static Fill codes();

  bool raw_bits = false;
};

struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;
  DType dtype = DType::f32;
  Fill fill;
  int64_t pitch = 0;                  // elements from row to row; 0: no gaps
  int64_t head_pitch = 0;             // of [tokens, heads, width]: elements from head to head; 0: no gaps
  std::vector<int64_t> strides = {};  // all of them, in elements; empty: as the above say
};

// The values of all arguments of one call.
struct CaseData {
  std::vector<TensorSpec> tensors;
  std::map<std::string, std::vector<double>> values;  // per tensor that is not only an output
  std::map<std::string, double> scalars;
  std::map<std::string, std::string> shared;  // an output and the input whose memory it is

  TensorSpec& tensor(const std::string& name);
  // Keeps rows [begin, end) of the named tensors.
  CaseData rows(const std::vector<std::string>& names, int64_t begin, int64_t end) const;
};

struct Outcome;

// What a property may do: change the data and run entries, under each instruction set and several thread counts.
struct PropertyContext {
  const OpEntry& entry;
  const CaseData& data;
  Runtime& runtime;
  Random& random;

  // Stops the property with a failure when the call fails or writes where it must not.
  Outcome run(const CaseData& data) const;
  Outcome run(const char* entry_name, const CaseData& data) const;

  // What the failure says when the call is refused as it must be; stops the property when the call succeeds or writes where
  // it must not.
  std::string refusal(const CaseData& data) const;
};

// Empty when it holds; else what differs.
using Property = std::function<std::string(const PropertyContext&)>;

class Case {
 public:
  Case(std::string entry, std::string label) : entry(std::move(entry)), label(std::move(label)) {}

  Case& input(std::string name, std::vector<int64_t> shape, Fill fill = Fill::normal(), DType dtype = DType::f32);
  Case& output(std::string name, std::vector<int64_t> shape, DType dtype = DType::f32);
  Case& inout(std::string name, std::vector<int64_t> shape, Fill fill = Fill::normal(), DType dtype = DType::f32);
  Case& number(std::string name, double value);
  Case& integer(std::string name, int64_t value);
  Case& flag(std::string name, bool value);

  // Rows of this tensor lie `elements` apart; the gaps must stay as they are.
  Case& pitch(const std::string& name, int64_t elements);

  // Heads of this [tokens, heads, width] lie `elements` apart; tokens lie as far apart as that makes them, or as pitch() says.
  Case& head_pitch(const std::string& name, int64_t elements);

  // All strides of this tensor, in elements: transposed, or 0 to repeat.
  Case& strides(const std::string& name, std::vector<int64_t> elements);

  // These arguments have one row per item, and an item's outputs depend on its own rows only: alone, in any part and in
  // the whole batch the bits are equal.
  Case& rows(std::initializer_list<const char*> names);

  // With `flag` set, these outputs continue from what is there: calls over parts of the `rows`, the first with the case's
  // own flag and the others with it set, give the bits of one call over all.
  Case& accumulates(const char* flag, std::initializer_list<const char*> outputs);

  // `output` may be the memory of `input`: the bits are those of memory of its own. Several pairs are tried together.
  Case& in_place(std::string output, std::string input);

  // Largest |got - want| / max(|want|, rms of the finite wanted values), for outputs of the working precision. 0: equal.
  Case& tolerance(double value);

  // The same with |want| alone below the line (2^-126 at least): for outputs whose sizes differ by orders of magnitude.
  Case& relative_tolerance(double value);

  // Compares with the reference in float instead of double: where a result leaves the range of float, double would not.
  Case& in_float();

  // `backward` computes the gradients of these inputs. Its arguments are matched by name: d_<output> as input, d_<input> as
  // output, the rest as in this case; flags and integers that this case lacks are 0.
  Case& gradient(std::string backward, std::initializer_list<const char*> inputs);

  Case& property(std::string name, Property check);

  // For bench only: useful flops and bytes that must move.
  Case& bench(double flops, double bytes);

  std::string entry;
  std::string label;
  CaseData data;  // without values
  std::vector<std::string> row_names;
  std::string accumulate_flag;
  std::vector<std::string> accumulated;
  std::map<std::string, std::string> shared;
  double allowed = 0;
  bool relative = false;
  bool float_reference = false;
  std::string backward;
  std::vector<std::string> differentiated;
  std::vector<std::pair<std::string, Property>> properties;
  bool bench_only = false;
  double flops = 0;
  double bytes = 0;
};

class CaseList {
 public:
  Case& add(std::string entry, std::string label) {
    cases.emplace_back(std::move(entry), std::move(label));
    return cases.back();
  }

  // A deque, so that the reference that add() returns stays valid while the list grows.
  std::deque<Case> cases;
};

// "3x576"
std::string size_label(std::initializer_list<int64_t> sizes);

// Every case of every op of this build.
const std::deque<Case>& all_cases();

}  // namespace trilithon
