#pragma once

#include <cmath>
#include <limits>
#include <set>

#include "harness/execute.h"
#include "ops/sampling/philox.h"

namespace trilithon::sampling {

// The published numbers of Random123's known-answer test.
inline std::string check_philox(const PropertyContext&) {
  const struct {
    PhiloxBlock counter;
    uint32_t low, high;
    PhiloxBlock want;
  } known[] = {
      {{{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0, {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}}};
  for (const auto& [counter, low, high, want] : known) {
    const PhiloxBlock got = philox(counter, low, high);
    for (int i = 0; i < 4; ++i) {
      if (got.words[i] != want.words[i]) return "word " + std::to_string(i) + " is " + std::to_string(got.words[i]);
    }
  }
  return "";
}

// The log-probability of each chosen token has the bits that lm-head gives it, at temperature 1 where the choice was greedy.
inline std::string check_lm_head(const PropertyContext& context) {
  const Outcome sampled = context.run(context.data);
  CaseData data = context.data;
  std::erase_if(data.tensors,
                [](const TensorSpec& spec) { return spec.name != "hidden" && spec.name != "weight" && spec.name != "temperature"; });
  const int64_t rows = sampled["tokens"].view().shape[0];
  for (double& temperature : data.values["temperature"]) temperature = temperature == 0 ? 1 : temperature;
  data.tensors.push_back({"targets", {rows}, DType::i32, {}});
  data.values["targets"] = sampled.values("tokens");
  data.tensors.push_back({"logprob", {rows}, DType::f32, {}});
  const Outcome trained = context.run("lm-head.forward", data);
  return compare_bits(sampled["logprob"], trained["logprob"]);
}

// Logits from gemm, sampled, give the tokens and bits that hidden rows give.
inline std::string check_from_logits(const PropertyContext& context) {
  const Outcome direct = context.run(context.data);
  const int64_t rows = direct["hidden"].view().shape[0], vocabulary = direct["weight"].view().shape[0];
  CaseData product;
  product.tensors = {context.data.tensors[0], context.data.tensors[1], {"y", {rows, vocabulary}, DType::f32, {}}};
  product.tensors[0].name = "x";
  product.values = {{"x", context.data.values.at("hidden")},
                    {"weight", context.data.values.at("weight")},
                    {"y", std::vector<double>(static_cast<size_t>(rows * vocabulary), 0)}};
  product.scalars["accumulate"] = 0;
  CaseData data = context.data;
  std::erase_if(data.tensors, [](const TensorSpec& spec) { return spec.name == "hidden" || spec.name == "weight"; });
  data.tensors.push_back({"logits", {rows, vocabulary}, DType::f32, {}});
  data.values["logits"] = context.run("gemm.forward", product).values("y");
  data.scalars.clear();
  const Outcome two_steps = context.run("sampling.from-logits", data);
  for (const char* name : {"tokens", "logprob"}) {
    if (const std::string difference = compare_bits(two_steps[name], direct[name]); !difference.empty()) return difference;
  }
  return "";
}

// Frequencies of many draws, against softmax over the tokens that the rules keep.
inline std::string check_frequencies(const PropertyContext& context, const std::vector<double>& shares) {
  const Outcome outcome = context.run(context.data);
  const std::vector<double> tokens = outcome.values("tokens");
  std::vector<double> counts(shares.size(), 0);
  for (const double token : tokens) counts[static_cast<size_t>(token)] += 1;
  const double draws = static_cast<double>(tokens.size());
  for (size_t v = 0; v < shares.size(); ++v) {
    const double allowed = 5 * std::sqrt(draws * shares[v] * (1 - shares[v]));
    if (std::fabs(counts[v] - draws * shares[v]) > allowed)
      return "token " + std::to_string(v) + " was drawn " + std::to_string(counts[v]) + " times, expected " +
             std::to_string(draws * shares[v]);
  }
  return "";
}

inline Case& with_rules(Case& item, int64_t rows, const Fill& temperature) {
  return item.input("temperature", {rows}, temperature)
      .input("seeds", {rows}, Fill::integers(0, int64_t{1} << 50), DType::i64)
      .input("positions", {rows}, Fill::integers(0, 1 << 20), DType::i32)
      .output("tokens", {rows}, DType::i32)
      .output("logprob", {rows});
}

inline void add_frequency_cases(CaseList& cases) {
  // Logits 2, 1, 0, 1 at temperature 0.8, many positions of one request.
  const int64_t rows = 4000;
  const Fill logits{[](std::vector<double>& values, const std::vector<int64_t>&, Random&) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::vector<double>{2, 1, 0, 1}[i % 4];
  }};
  const Fill counting{[](std::vector<double>& values, const std::vector<int64_t>&, Random&) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  }};
  const double high = std::exp(2 / 0.8), middle = std::exp(1 / 0.8), low = 1;
  struct Kept {
    const char* label;
    double top_k, top_p, min_p;
    std::vector<double> weights;
  };
  for (const Kept& k : {Kept{"all", 0, 1, 0, {high, middle, low, middle}},
                        {"top_k 2: the tie goes to token 1", 2, 1, 0, {high, middle, 0, 0}},
                        {"top_p 0.7: the tie goes to token 1", 0, 0.7, 0, {high, middle, 0, 0}},
                        {"top_p 0.9", 0, 0.9, 0, {high, middle, 0, middle}},
                        {"min_p 0.2", 0, 1, 0.2, {high, middle, 0, middle}},
                        {"top_k 3, then top_p 0.6", 3, 0.6, 0, {high, 0, 0, 0}}}) {
    double total = 0;
    for (const double weight : k.weights) total += weight;
    std::vector<double> shares = k.weights;
    for (double& share : shares) share /= total;
    cases.add("sampling.from-logits", std::string("frequencies, ") + k.label)
        .input("logits", {rows, 4}, logits)
        .input("temperature", {rows}, Fill::constant(0.8))
        .input("top_k", {rows}, Fill::constant(k.top_k), DType::i32)
        .input("top_p", {rows}, Fill::constant(k.top_p))
        .input("min_p", {rows}, Fill::constant(k.min_p))
        .input("seeds", {rows}, Fill::constant(77), DType::i64)
        .input("positions", {rows}, counting, DType::i32)
        .output("tokens", {rows}, DType::i32)
        .output("logprob", {rows})
        .tolerance(1e-6)
        .property("frequencies", [shares](const PropertyContext& context) { return check_frequencies(context, shares); });
  }
}

inline void add_refusals(CaseList& cases) {
  with_rules(cases.add("sampling.from-logits", "refusals").input("logits", {3, 40}), 3, Fill::constant(1))
      .tolerance(1e-5)
      .property("logits",
                [](const PropertyContext& context) -> std::string {
                  const double infinity = std::numeric_limits<double>::infinity();
                  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), infinity}) {
                    CaseData data = context.data;
                    data.values["logits"][57] = bad;
                    const std::string text = context.refusal(data);
                    if (text.find("given NaN, infinity or nothing finite in row 1") == std::string::npos) return text;
                  }
                  CaseData data = context.data;
                  // Masked logits are fine, as long as one is left.
                  for (size_t i = 80; i < 120; ++i) data.values["logits"][i] = -infinity;
                  const std::string text = context.refusal(data);
                  if (text.find("given NaN, infinity or nothing finite in row 2") == std::string::npos) return text;
                  data.values["logits"][101] = -3;
                  const Outcome outcome = context.run(data);
                  return outcome["tokens"].value(2) == 21 && outcome["logprob"].value(2) == 0 ? "" : "the one token left was not chosen";
                })
      .property("rules",
                [](const PropertyContext& context) -> std::string {
                  CaseData data = context.data;
                  data.values["temperature"][2] = -0.5;
                  if (const std::string text = context.refusal(data);
                      text != "sampling.from-logits: temperature: expected 0, or 1e-6 to 1e6, given -0.5 for row 2")
                    return text;
                  data = context.data;
                  data.tensors.push_back({"top_p", {3}, DType::f32, {}});
                  data.values["top_p"] = {1, 0, 1};
                  const std::string text = context.refusal(data);
                  return text == "sampling.from-logits: top_p: expected a number above 0, at most 1, given 0 for row 1" ? "" : text;
                })
      .property("Philox", check_philox);
}

inline void add_cases(CaseList& cases) {
  // Greedy rows among others.
  const Fill temperatures{[](std::vector<double>& values, const std::vector<int64_t>&, Random& random) {
    for (double& value : values) value = random.below(4) == 0 ? 0 : 0.5 + random.uniform();
  }};
  const Fill limits{[](std::vector<double>& values, const std::vector<int64_t>& shape, Random& random) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(random.below(shape[0] > 5 ? 40 : 6)) - 1;
  }};
  struct Size {
    int64_t rows, vocabulary, width;
  };
  for (const Size s : {Size{1, 1, 1}, {5, 15, 7}, {3, 513, 20}, {21, 1100, 16}, {2, 4700, 8}}) {
    const std::string size = size_label({s.rows, s.vocabulary, s.width});
    Case& plain = cases.add("sampling.from-hidden", size);
    plain.input("hidden", {s.rows, s.width}).input("weight", {s.vocabulary, s.width}, Fill::normal(0, 3 / std::sqrt(double(s.width))));
    with_rules(plain, s.rows, temperatures)
        .integer("vocabulary", 0)
        .rows({"hidden", "temperature", "seeds", "positions", "tokens", "logprob"})
        .tolerance(1e-5)
        .property("equals lm-head", check_lm_head)
        .property("equals gemm, then from-logits", check_from_logits);
    Case& ruled = cases.add("sampling.from-logits", size);
    ruled.input("logits", {s.rows, s.vocabulary}, Fill::normal(0, 3))
        .input("top_k", {s.rows}, limits, DType::i32)
        .input("top_p", {s.rows}, Fill::uniform(0.3, 1))
        .input("min_p", {s.rows}, Fill::uniform(0, 0.05));
    with_rules(ruled, s.rows, temperatures)
        .rows({"logits", "top_k", "top_p", "min_p", "temperature", "seeds", "positions", "tokens", "logprob"})
        .tolerance(1e-5);
  }
  // All equal: every cut of the rules goes through ties.
  with_rules(cases.add("sampling.from-logits", "ties, strided")
                 .input("logits", {40, 700}, Fill::integers(0, 2))
                 .pitch("logits", 720)
                 .input("top_k", {40}, Fill::integers(0, 500), DType::i32)
                 .input("top_p", {40}, Fill::uniform(0.1, 1)),
             40, Fill::constant(1))
      .rows({"logits", "top_k", "top_p", "temperature", "seeds", "positions", "tokens", "logprob"})
      .tolerance(1e-5);
  // The nucleus alone, wide and narrow distributions.
  for (const double spread : {0.01, 1.0, 8.0}) {
    with_rules(cases.add("sampling.from-logits", "top_p alone, spread " + std::to_string(spread))
                   .input("logits", {30, 900}, Fill::normal(0, spread))
                   .input("top_p", {30}, Fill::uniform(0.01, 1)),
               30, Fill::constant(1))
        .rows({"logits", "top_p", "temperature", "seeds", "positions", "tokens", "logprob"})
        .tolerance(1e-5);
  }
  add_frequency_cases(cases);
  add_refusals(cases);

  const int64_t vocabulary = 151936;
  struct Timed {
    const char* label;
    double top_k, top_p;
  };
  for (const Timed& t : {Timed{"all of 151936", 0, 1}, {"top_k 20, top_p 0.95 of 151936", 20, 0.95}, {"top_p 0.95 of 151936", 0, 0.95}}) {
    with_rules(cases.add("sampling.from-logits", t.label)
                   .input("logits", {4, vocabulary}, Fill::normal(0, 3))
                   .input("top_k", {4}, Fill::constant(t.top_k), DType::i32)
                   .input("top_p", {4}, Fill::constant(t.top_p)),
               4, Fill::constant(0.7))
        .bench(0, 4.0 * 4 * vocabulary);
  }
  with_rules(cases.add("sampling.from-hidden", "4x16384x1024 packed").input("hidden", {4, 1024}).input("packed", {512, 1024, 32}), 4,
             Fill::constant(1))
      .integer("vocabulary", 16384)
      .bench(0, 4.0 * 16384 * 1024);
}

}  // namespace trilithon::sampling
