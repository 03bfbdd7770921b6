#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/choices.h"
#include "harness/refusal.h"
#include "harness/sequences.h"

namespace trilithon::dsa_indexer {

struct CaseSize {
  std::vector<double> starts;  // of documents
  int64_t heads, width, top_k;

  int64_t tokens() const { return static_cast<int64_t>(starts.back()); }
  int64_t documents() const { return static_cast<int64_t>(starts.size()) - 1; }
  std::string label() const { return size_label({documents(), tokens(), heads, width}) + " top " + std::to_string(top_k); }
};

inline Case& add_inputs(Case& item, const CaseSize& s, bool whole) {
  // Small whole numbers and a scale that is a power of two: scores are exact, so that ties are ties in every precision.
  const Fill values = whole ? Fill::integers(-2, 3) : Fill::normal();
  return item.input("q", {s.tokens(), s.heads, s.width}, values)
      .input("k", {s.tokens(), s.width}, values)
      .input("weights", {s.tokens(), s.heads}, values)
      .input("document_starts", {s.documents() + 1}, Fill::values(s.starts), DType::i32)
      .number("scale", 0.125);
}

inline Case& add_select(CaseList& cases, const CaseSize& s, const std::string& label, bool whole) {
  return add_inputs(cases.add("dsa-indexer.select", label), s, whole)
      .output("indices", {s.tokens(), s.top_k}, DType::i32)
      .output("counts", {s.tokens()}, DType::i32);
}

inline Case& add_lists(Case& item, const CaseSize& s) { return add_choice(item, s.starts, s.top_k); }

// A full sort of the scores that dsa-indexer.scores gives for all keys selects the same keys.
inline std::string equals_sorted_scores(const PropertyContext& context) {
  const Outcome selected = context.run(context.data);
  CaseData all = context.data;
  const int64_t tokens = all.tensor("q").shape[0], top_k = all.tensor("indices").shape[1];
  const std::vector<double> starts = all.values.at("document_starts");
  sequences::drop(all, "indices");
  sequences::drop(all, "counts");
  std::vector<double> lists(static_cast<size_t>(tokens * tokens), -1), counts(static_cast<size_t>(tokens));
  for (size_t d = 0; d + 1 < starts.size(); ++d) {
    for (double row = starts[d]; row < starts[d + 1]; ++row) {
      counts[static_cast<size_t>(row)] = row - starts[d] + 1;
      for (double j = 0; j <= row - starts[d]; ++j) lists[static_cast<size_t>(row * static_cast<double>(tokens) + j)] = j;
    }
  }
  sequences::set_integers(all, "indices", {tokens, tokens}, lists);
  sequences::set_integers(all, "counts", {tokens}, counts);
  all.tensors.push_back({"scores", {tokens, tokens}, DType::f32, {}});
  const Outcome scored = context.run("dsa-indexer.scores", all);
  for (int64_t t = 0; t < tokens; ++t) {
    std::vector<int64_t> order(static_cast<size_t>(counts[static_cast<size_t>(t)]));
    std::iota(order.begin(), order.end(), 0);
    const auto score = [&](int64_t j) { return scored["scores"].value(t * tokens + j); };
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return std::isnan(score(b)) ? !std::isnan(score(a)) : score(a) > score(b); });
    order.resize(std::min(order.size(), static_cast<size_t>(top_k)));
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) {
      const double got = selected["indices"].value(t * top_k + static_cast<int64_t>(i));
      if (got != static_cast<double>(order[i])) {
        return "query " + std::to_string(t) + " chose " + std::to_string(got) + " where its sorted scores give " + std::to_string(order[i]);
      }
    }
  }
  return {};
}

inline void add_cases(CaseList& cases) {
  const SequenceNames names{{"q", "weights", "indices", "counts"}, {"k"}, {"indices", "counts"}};
  for (const CaseSize& s : {CaseSize{{0, 1}, 1, 1, 1},
                            {{0, 5, 5, 6, 20}, 2, 7, 4},
                            {{0, 70, 139}, 4, 32, 16},
                            {{0, 200}, 3, 5, 64},
                            {{0, 100, 101}, 8, 16, 300}}) {
    for (const bool whole : {true, false}) {
      Case& item = add_select(cases, s, s.label() + (whole ? ", ties" : ""), whole)
                       .property("sorted scores", equals_sorted_scores)
                       .property("documents alone", documents_alone(names))
                       .property("chunks", chunks_equal_whole(names))
                       .property("pages of 1", pages_equal_packed(names, "dsa-indexer.select-paged", 1, 30))
                       .property("pages of 24", pages_equal_packed(names, "dsa-indexer.select-paged", 24, 60));
      // Where two scores differ by less than their rounding, double may choose otherwise; their order is then that of the property.
      item.tolerance(whole ? 0 : 1e9);
    }
    const SequenceNames score_names{{"q", "weights", "indices", "counts", "scores"}, {"k"}, {"scores"}};
    const SequenceNames gradients{
        {"d_scores", "q", "weights", "indices", "counts", "d_q", "d_weights"}, {"k", "d_k"}, {"d_q", "d_k", "d_weights"}};
    SequenceNames query_gradients = gradients;
    query_gradients.outputs = {"d_q", "d_weights"};
    Case& scores = add_lists(add_inputs(cases.add("dsa-indexer.scores", s.label()), s, false), s)
                       .output("scores", {s.tokens(), s.top_k})
                       .tolerance(4e-6)
                       .property("documents alone", documents_alone(score_names))
                       .property("chunks", chunks_equal_whole(score_names));
    if (s.tokens() <= 139) scores.gradient("dsa-indexer.scores-backward", {"q", "k", "weights"});
    add_lists(add_inputs(cases.add("dsa-indexer.scores-backward", s.label()), s, false), s)
        .input("d_scores", {s.tokens(), s.top_k})
        .output("d_q", {s.tokens(), s.heads, s.width})
        .output("d_k", {s.tokens(), s.width})
        .output("d_weights", {s.tokens(), s.heads})
        .tolerance(1e-5)
        .property("documents alone", documents_alone(gradients))
        .property("chunks", chunks_equal_whole(query_gradients));
  }
  // Candidates run out of room many times, and few queries share out segments of keys.
  const CaseSize longer{{0, 1300}, 1, 2, 12};
  add_select(cases, longer, longer.label(), true).property("pages of 48", pages_equal_packed(names, "dsa-indexer.select-paged", 48, 700));
  // Scores that rise with the position, so that every key is a candidate.
  Case& rising = add_select(cases, {{0, 900}, 1, 1, 40}, "rising scores", true).property("sorted scores", equals_sorted_scores);
  std::vector<double> line(900);
  std::iota(line.begin(), line.end(), 0.0);
  rising.data.tensor("q").fill = Fill::constant(1);
  rising.data.tensor("weights").fill = Fill::constant(1);
  rising.data.tensor("k").fill = Fill::values(line);
  // NaN comes last, infinities in their order, -0 is 0.
  Case& special = add_select(cases, {{0, 150}, 1, 2, 8}, "special values", true).property("sorted scores", equals_sorted_scores);
  special.data.tensor("k").fill = Fill::special();
  special.in_float();
  add_select(cases, {{0, 40, 90}, 4, 12, 8}, "strided", true).head_pitch("q", 20).pitch("k", 16).pitch("weights", 9);
  const CaseSize bad{{0, 3, 8}, 2, 4, 2};
  add_lists(add_inputs(cases.add("dsa-indexer.scores", "bad input"), bad, false), bad)
      .output("scores", {8, 2})
      .tolerance(4e-6)
      .property("a future key", refused([](CaseData& data) { data.values["indices"][9] = 2; },
                                        "indices: expected ascending positions that the query sees, given 2 for query 4 at position 1"));

  for (const CaseSize& s : {CaseSize{{0, 2048}, 32, 128, 512}, {{0, 4096}, 8, 32, 512}}) {
    double pairs = 0, chosen = 0;
    for (int64_t t = 0; t < s.tokens(); ++t) {
      pairs += t >= s.top_k ? static_cast<double>(t + 1) : 0;
      chosen += static_cast<double>(std::min(s.top_k, t + 1));
    }
    const double flops = 2 * static_cast<double>(s.heads * s.width);
    add_select(cases, s, s.label(), false).bench(pairs * flops, 0);
    add_lists(add_inputs(cases.add("dsa-indexer.scores", s.label()), s, false), s)
        .output("scores", {s.tokens(), s.top_k})
        .bench(chosen * flops, 0);
    add_lists(add_inputs(cases.add("dsa-indexer.scores-backward", s.label()), s, false), s)
        .input("d_scores", {s.tokens(), s.top_k})
        .output("d_q", {s.tokens(), s.heads, s.width})
        .output("d_k", {s.tokens(), s.width})
        .output("d_weights", {s.tokens(), s.heads})
        .bench(3 * chosen * flops, 0);
  }
}

}  // namespace trilithon::dsa_indexer
