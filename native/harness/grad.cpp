// Mode grad: the gradient that the backward entry computes against central differences of the forward entry, both by the
// reference in double. What a forward pass selects (experts, keys) is an input of such a case, so it stays frozen.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "harness/columns.h"
#include "harness/execute.h"

namespace trilithon {
namespace {

constexpr double allowed = 2e-6;
constexpr int64_t samples_per_input = 24;

class GradientTest {
 public:
  GradientTest(const Case& item, Column& reference, uint64_t seed)
      : item_(item),
        forward_(entry(item.entry)),
        backward_(entry(item.backward)),
        reference_(reference),
        seed_(seed),
        data_(materialise(item, seed)) {}

  std::string run() {
    const Outcome base = call(forward_, data_);
    Random random(seed_, item_.label + "/gradient");
    CaseData back = backward_data(base, random);
    const Outcome gradient = call(backward_, back);
    for (const std::string& name : item_.differentiated) {
      const GuardedTensor& analytic = gradient["d_" + name];
      double scale = 0;
      for (int64_t i = 0; i < analytic.elements(); ++i) scale = std::max(scale, std::fabs(analytic.value(i)));
      const int64_t count = std::min(samples_per_input, analytic.elements());
      for (int64_t k = 0; k < count; ++k) {
        const int64_t i = analytic.elements() <= samples_per_input ? k : random.below(analytic.elements());
        const double numeric = difference(name, i, back);
        const double error = std::fabs(numeric - analytic.value(i)) / std::max({scale, std::fabs(numeric), 1e-12});
        worst_ = std::max(worst_, error);
        if (!(error <= allowed)) {
          char text[200];
          std::snprintf(text, sizeof text, "d_%s%s (element %lld): backward gives %.12g, differences give %.12g", name.c_str(),
                        analytic.coordinate(i).c_str(), static_cast<long long>(i), analytic.value(i), numeric);
          return text;
        }
      }
    }
    return {};
  }

  double worst() const { return worst_; }

 private:
  static const OpEntry& entry(const std::string& name) {
    const OpEntry* found = find_op(name.c_str());
    if (found == nullptr) throw std::runtime_error("there is no entry " + name);
    return *found;
  }

  Outcome call(const OpEntry& op, const CaseData& data) {
    Outcome outcome = execute(op, data, *reference_.runtime, true, 0);
    if (!outcome.status.ok()) throw std::runtime_error(outcome.status.failure().message());
    if (!outcome.damage.empty()) throw std::runtime_error(outcome.damage);
    return outcome;
  }

  // Arguments of the backward entry, by name. Weights of the sum of all outputs are the incoming gradients.
  CaseData backward_data(const Outcome& base, Random& random) {
    CaseData back;
    back.scalars = data_.scalars;
    for (const ArgSpec& spec : backward_.args) {
      const std::string name = spec.name;
      if (!spec.is_tensor()) continue;
      const bool is_gradient = name.starts_with("d_") && base.tensors.contains(name.substr(2));
      const std::string source = is_gradient ? name.substr(2) : name;
      if (!base.tensors.contains(source)) {
        if (spec.has(optional)) continue;
        throw std::runtime_error(std::string(backward_.name) + " needs " + name + ", which the forward case does not have");
      }
      TensorSpec tensor = data_.tensor(source);
      tensor.name = name;
      tensor.fill = {};
      if (is_gradient && spec.kind == ArgKind::input) {
        std::vector<double> weights(static_cast<size_t>(base[source].elements()));
        for (double& weight : weights) weight = random.normal();
        back.values[name] = std::move(weights);
      } else if (is_gradient) {
        // An output that accumulates starts from zero here.
        if (spec.kind == ArgKind::inout) back.values[name] = std::vector<double>(static_cast<size_t>(base[source].elements()), 0.0);
      } else {
        back.values[name] = base.values(source);
      }
      back.tensors.push_back(std::move(tensor));
    }
    return back;
  }

  double objective(const CaseData& data, const CaseData& back) {
    const Outcome outcome = call(forward_, data);
    double total = 0;
    for (const ArgSpec& spec : forward_.args) {
      if (!spec.is_tensor() || !spec.is_output()) continue;
      const auto weights = back.values.find(std::string("d_") + spec.name);
      const bool incoming =
          weights != back.values.end() && backward_.find(("d_" + std::string(spec.name)).c_str()) >= 0 &&
          backward_.args[static_cast<size_t>(backward_.find(("d_" + std::string(spec.name)).c_str()))].kind == ArgKind::input;
      if (!incoming) continue;
      for (int64_t i = 0; i < outcome[spec.name].elements(); ++i)
        total += weights->second[static_cast<size_t>(i)] * outcome[spec.name].value(i);
    }
    return total;
  }

  double difference(const std::string& name, int64_t element, const CaseData& back) {
    CaseData moved = data_;
    double& value = moved.values.at(name)[static_cast<size_t>(element)];
    const double original = value;
    const double step = 1e-5 * std::max(1.0, std::fabs(original));
    value = original + step;
    const double above = objective(moved, back);
    value = original - step;
    const double below = objective(moved, back);
    return (above - below) / (2 * step);
  }

  const Case& item_;
  const OpEntry& forward_;
  const OpEntry& backward_;
  Column& reference_;
  uint64_t seed_;
  CaseData data_;
  double worst_ = 0;
};

}  // namespace

int run_gradients(const Options& options) {
  Column reference = make_reference();
  int failures = 0, checked = 0;
  for (const Case& item : all_cases()) {
    const OpEntry* entry = find_op(item.entry.c_str());
    if (item.backward.empty() || item.bench_only || entry == nullptr || !options.wants(entry->op)) continue;
    std::string problem;
    double worst = 0;
    try {
      GradientTest test(item, reference, options.seed);
      problem = test.run();
      worst = test.worst();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    ++checked;
    if (problem.empty()) {
      std::printf("ok    %s of %s [%s], worst error %.2g\n", item.backward.c_str(), item.entry.c_str(), item.label.c_str(), worst);
    } else {
      ++failures;
      std::printf("FAIL  %s of %s [%s] %s\n", item.backward.c_str(), item.entry.c_str(), item.label.c_str(), problem.c_str());
    }
  }
  std::printf("%d gradients checked, %d failed, seed %llu\n", checked, failures, static_cast<unsigned long long>(options.seed));
  return failures == 0 ? 0 : 1;
}

}  // namespace trilithon
