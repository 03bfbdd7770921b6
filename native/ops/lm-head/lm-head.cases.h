#pragma once

#include <cmath>
#include <limits>

#include "harness/execute.h"

namespace trilithon::lm_head {

// A packed weight gives the bits of the plain one.
inline std::string check_packed(const PropertyContext& context) {
  const Outcome plain = context.run(context.data);
  const int64_t vocabulary = plain["weight"].view().shape[0], width = plain["weight"].view().shape[1];
  CaseData pack;
  pack.tensors = {{"weight", {vocabulary, width}, DType::f32, {}}, {"packed", {(vocabulary + 31) / 32, width, 32}, DType::f32, {}}};
  pack.values["weight"] = context.data.values.at("weight");
  pack.scalars["backward"] = 0;
  CaseData data = context.data;
  data.values["packed"] = context.run("gemm.pack", pack).values("packed");
  data.tensors.push_back(pack.tensors[1]);
  std::erase_if(data.tensors, [](const TensorSpec& spec) { return spec.name == "weight"; });
  data.scalars["vocabulary"] = static_cast<double>(vocabulary);
  const Outcome packed = context.run(data);
  for (const char* name : {"logprob", "entropy", "stats"}) {
    if (const std::string difference = compare_bits(packed[name], plain[name]); !difference.empty()) return difference;
  }
  return "";
}

// Log-probabilities of all tokens of a row sum to 1 as probabilities, and their mean is the negative entropy.
inline std::string check_distribution(const PropertyContext& context) {
  const Outcome outcome = context.run(context.data);
  const int64_t vocabulary = outcome["weight"].view().shape[0];
  CaseData data = context.data.rows({"hidden", "targets", "temperature", "logprob", "entropy", "stats"}, 0, 1);
  // One row repeated, a target each.
  const std::vector<double> hidden = data.values["hidden"];
  const double temperature = data.values["temperature"][0];
  for (const char* name : {"hidden", "targets", "temperature", "logprob", "entropy", "stats"}) data.tensor(name).shape[0] = vocabulary;
  data.values["hidden"].clear();
  data.values["targets"].clear();
  for (int64_t v = 0; v < vocabulary; ++v) {
    data.values["hidden"].insert(data.values["hidden"].end(), hidden.begin(), hidden.end());
    data.values["targets"].push_back(static_cast<double>(v));
  }
  data.values["temperature"].assign(static_cast<size_t>(vocabulary), temperature);
  const Outcome all = context.run(data);
  double total = 0, mean = 0;
  for (int64_t v = 0; v < vocabulary; ++v) {
    total += std::exp(all["logprob"].value(v));
    mean += std::exp(all["logprob"].value(v)) * all["logprob"].value(v);
  }
  if (std::fabs(total - 1) > 1e-5) return "probabilities sum to " + std::to_string(total);
  const double entropy = outcome["entropy"].value(0);
  return std::fabs(entropy + mean) <= 1e-5 * std::max(1.0, entropy)
             ? ""
             : "entropy is " + std::to_string(entropy) + ", not " + std::to_string(-mean);
}

// Calls over parts of the rows, accumulated, give the bits of one call over all: parts that no block of rows ends with.
inline std::string check_accumulated(const PropertyContext& context) {
  const std::vector<std::string> rows = {"d_logprob", "hidden", "targets", "temperature", "stats", "d_hidden"};
  const Outcome whole = context.run(context.data);
  const int64_t tokens = whole["hidden"].view().shape[0];
  std::vector<double> d_weight = context.data.values.at("d_weight");
  for (int64_t begin = 0, step = 1; begin < tokens; begin += step, step = 3 * step + 5) {
    CaseData part = context.data.rows(rows, begin, std::min(tokens, begin + step));
    part.values["d_weight"] = d_weight;
    if (begin > 0) part.scalars["accumulate"] = 1;
    d_weight = context.run(part).values("d_weight");
  }
  return d_weight == whole.values("d_weight") ? "" : "d_weight of parts differs";
}

inline void add_cases(CaseList& cases) {
  struct Size {
    int64_t tokens, vocabulary, width;
  };
  // The last two have more rows than a part and than a group of rows.
  for (const Size s : {Size{1, 1, 1}, {3, 15, 7}, {5, 513, 33}, {13, 1100, 48}, {2, 4700, 20}, {600, 70, 3}, {2310, 33, 2}}) {
    const std::string size = size_label({s.tokens, s.vocabulary, s.width});
    // Logits of a spread of 3, as a trained model has.
    const Fill weights = Fill::normal(0, 3 / std::sqrt(static_cast<double>(s.width)));
    Case& forward = cases.add("lm-head.forward", size);
    forward.input("hidden", {s.tokens, s.width})
        .input("weight", {s.vocabulary, s.width}, weights)
        .input("targets", {s.tokens}, Fill::integers(0, s.vocabulary), DType::i32)
        .input("temperature", {s.tokens}, Fill::uniform(0.6, 1.5))
        .output("logprob", {s.tokens})
        .output("entropy", {s.tokens})
        .output("stats", {s.tokens, 2})
        .integer("vocabulary", 0)
        .rows({"hidden", "targets", "temperature", "logprob", "entropy", "stats"})
        .tolerance(3e-6)
        .property("packed", check_packed)
        .gradient("lm-head.backward", {"hidden", "weight"});
    if (s.tokens < 600) forward.property("distribution", check_distribution);
    cases.add("lm-head.backward", size)
        .input("d_logprob", {s.tokens})
        .input("hidden", {s.tokens, s.width})
        .input("weight", {s.vocabulary, s.width}, weights)
        .input("targets", {s.tokens}, Fill::integers(0, s.vocabulary), DType::i32)
        .input("temperature", {s.tokens}, Fill::uniform(0.6, 1.5))
        // Not of these logits, but in their range.
        .input("stats", {s.tokens, 2}, Fill::uniform(3, 6))
        .output("d_hidden", {s.tokens, s.width})
        .inout("d_weight", {s.vocabulary, s.width})
        .flag("accumulate", s.tokens % 2 == 1)
        .rows({"d_logprob", "hidden", "targets", "temperature", "stats", "d_hidden"})
        .tolerance(2e-5)
        .property("accumulated over parts", check_accumulated);
  }
  cases.add("lm-head.forward", "strided, no entropy")
      .input("hidden", {6, 20})
      .pitch("hidden", 32)
      .input("weight", {600, 20})
      .pitch("weight", 24)
      .input("targets", {6}, Fill::integers(0, 600), DType::i32)
      .input("temperature", {6}, Fill::constant(1))
      .output("logprob", {6})
      .integer("vocabulary", 600)
      .rows({"hidden", "targets", "temperature", "logprob"})
      .tolerance(3e-6);
  cases.add("lm-head.backward", "d_hidden alone")
      .input("d_logprob", {6})
      .input("hidden", {6, 20})
      .input("weight", {600, 20})
      .input("targets", {6}, Fill::integers(0, 600), DType::i32)
      .input("temperature", {6}, Fill::constant(1))
      .input("stats", {6, 2}, Fill::uniform(3, 6))
      .output("d_hidden", {6, 20})
      .flag("accumulate", false)
      .tolerance(2e-5);
  // NaN and infinity of a hidden row stay in it; large logits do not overflow.
  cases.add("lm-head.forward", "special values")
      .input("hidden", {8, 5}, Fill::special())
      .input("weight", {40, 5}, Fill::normal(0, 50))
      .input("targets", {8}, Fill::integers(0, 40), DType::i32)
      .input("temperature", {8}, Fill::constant(0.5))
      .output("logprob", {8})
      .output("entropy", {8})
      .output("stats", {8, 2})
      .integer("vocabulary", 0)
      .rows({"hidden", "targets", "temperature", "logprob", "entropy", "stats"})
      .tolerance(3e-6);
  cases.add("lm-head.forward", "refusals")
      .input("hidden", {2, 4})
      .input("weight", {10, 4})
      .input("targets", {2}, Fill::integers(0, 10), DType::i32)
      .input("temperature", {2}, Fill::constant(1))
      .output("logprob", {2})
      .integer("vocabulary", 0)
      .tolerance(3e-6)
      .property("targets and temperatures", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        data.values["targets"][1] = 10;
        std::string text = context.refusal(data);
        if (text != "lm-head.forward: targets: expected tokens from 0 to 9, given 10 at 1") return text;
        data = context.data;
        for (const double temperature : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
          data.values["temperature"][0] = temperature;
          text = context.refusal(data);
          if (text.find("lm-head.forward: temperature: expected numbers from 1e-6 to 1e6, given ") != 0) return text;
        }
        data = context.data;
        std::erase_if(data.tensors, [](const TensorSpec& spec) { return spec.name == "weight"; });
        text = context.refusal(data);
        return text == "lm-head.forward: weight: expected either weight or packed, given neither" ? "" : text;
      });

  const auto with_rows = [](Case& item, int64_t tokens, int64_t vocabulary, int64_t width) -> Case& {
    return item.input("hidden", {tokens, width})
        .input("targets", {tokens}, Fill::integers(0, vocabulary), DType::i32)
        .input("temperature", {tokens}, Fill::constant(1));
  };
  const int64_t vocabulary = 16384, width = 1024;
  const double pair = 2.0 * vocabulary * width;
  with_rows(cases.add("lm-head.forward", size_label({512, vocabulary, width})), 512, vocabulary, width)
      .input("weight", {vocabulary, width})
      .output("logprob", {512})
      .output("entropy", {512})
      .integer("vocabulary", 0)
      .bench(512 * pair, 0);
  with_rows(cases.add("lm-head.backward", size_label({512, vocabulary, width})), 512, vocabulary, width)
      .input("d_logprob", {512})
      .input("weight", {vocabulary, width})
      .input("stats", {512, 2}, Fill::uniform(3, 6))
      .output("d_hidden", {512, width})
      .inout("d_weight", {vocabulary, width})
      .flag("accumulate", true)
      .bench(3 * 512 * pair, 0);
  for (const int64_t tokens : {1, 8}) {
    with_rows(cases.add("lm-head.forward", size_label({tokens, vocabulary, width}) + " packed"), tokens, vocabulary, width)
        .input("packed", {vocabulary / 32, width, 32})
        .output("logprob", {tokens})
        .integer("vocabulary", vocabulary)
        .bench(0, 4.0 * vocabulary * width);
  }
}

}  // namespace trilithon::lm_head
