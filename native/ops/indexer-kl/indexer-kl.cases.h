#pragma once

#include <algorithm>
#include <cmath>

#include "harness/choices.h"
#include "harness/refusal.h"
#include "harness/sequences.h"

namespace trilithon::indexer_kl {

struct CaseSize {
  std::vector<double> starts;  // of documents
  int64_t index_heads, index_width, heads, latent_width, rope_width;
  int64_t top_k;  // 0: all keys

  int64_t tokens() const { return static_cast<int64_t>(starts.back()); }
  int64_t documents() const { return static_cast<int64_t>(starts.size()) - 1; }
  std::string label() const {
    return size_label({documents(), tokens(), index_heads, index_width, heads, latent_width, rope_width}) + " top " + std::to_string(top_k);
  }
};

inline Case& add_inputs(Case& item, const CaseSize& s) {
  item.input("index_q", {s.tokens(), s.index_heads, s.index_width})
      .input("index_k", {s.tokens(), s.index_width})
      .input("index_weights", {s.tokens(), s.index_heads})
      .input("q", {s.tokens(), s.heads, s.latent_width})
      .input("q_rope", {s.tokens(), s.heads, s.rope_width})
      .input("latent", {s.tokens(), s.latent_width})
      .input("rope", {s.tokens(), s.rope_width})
      .input("lse", {s.tokens(), s.heads}, Fill::uniform(2, 4))
      .input("document_starts", {s.documents() + 1}, Fill::values(s.starts), DType::i32)
      .number("index_scale", 1 / std::sqrt(static_cast<double>(s.index_heads * s.index_width)))
      .number("scale", 1 / std::sqrt(static_cast<double>(s.latent_width + s.rope_width)));
  return s.top_k == 0 ? item : add_choice(item, s.starts, s.top_k);
}

inline Case& add_forward(CaseList& cases, const CaseSize& s, const std::string& label) {
  return add_inputs(cases.add("indexer-kl.forward", label), s)
      .output("kl", {s.tokens()})
      .output("index_lse", {s.tokens()})
      .output("target_sum", {s.tokens()});
}

inline Case& add_backward(CaseList& cases, const CaseSize& s, const std::string& label) {
  return add_inputs(cases.add("indexer-kl.backward", label).input("d_kl", {s.tokens()}), s)
      .input("index_lse", {s.tokens()}, Fill::uniform(3, 5))
      .input("target_sum", {s.tokens()}, Fill::uniform(1, 3))
      .output("d_index_q", {s.tokens(), s.index_heads, s.index_width})
      .output("d_index_k", {s.tokens(), s.index_width})
      .output("d_index_weights", {s.tokens(), s.index_heads});
}

// The loss is 0, to rounding, where the index scores are the logarithm of the target: one head each, same product, lse as it is.
inline std::string zero_at_its_target(const PropertyContext& context) {
  const Outcome outcome = context.run(context.data);
  for (int64_t t = 0; t < outcome["kl"].elements(); ++t) {
    const double kl = outcome["kl"].value(t);
    if (!(std::fabs(kl) < 2e-6)) return "kl of query " + std::to_string(t) + " is " + std::to_string(kl);
  }
  return {};
}

inline void add_cases(CaseList& cases) {
  for (const CaseSize& s : {CaseSize{{0, 1}, 1, 1, 1, 1, 1, 0},
                            {{0, 5, 5, 6, 20}, 2, 7, 3, 5, 2, 4},
                            {{0, 70, 139}, 4, 32, 4, 32, 16, 0},
                            {{0, 70, 139}, 4, 32, 4, 32, 16, 16},
                            {{0, 90, 91}, 8, 16, 20, 17, 5, 80},
                            {{0, 40}, 3, 16, 2, 8, 8, 64}}) {
    SequenceNames names{{"index_q", "index_weights", "q", "q_rope", "lse", "kl", "index_lse", "target_sum"},
                        {"index_k", "latent", "rope"},
                        {"kl", "index_lse", "target_sum"}};
    SequenceNames back{
        {"d_kl", "index_q", "index_weights", "q", "q_rope", "lse", "index_lse", "target_sum", "d_index_q", "d_index_weights"},
        {"index_k", "latent", "rope", "d_index_k"},
        {"d_index_q", "d_index_k", "d_index_weights"}};
    if (s.top_k > 0) {
      for (SequenceNames* list : {&names, &back}) list->queries.insert(list->queries.end(), {"indices", "counts"});
    }
    SequenceNames query_back = back;
    query_back.outputs = {"d_index_q", "d_index_weights"};
    Case& forward = add_forward(cases, s, s.label())
                        .tolerance(5e-6)
                        .property("documents alone", documents_alone(names))
                        .property("chunks", chunks_equal_whole(names));
    if (s.heads <= 4) forward.gradient("indexer-kl.backward", {"index_q", "index_k", "index_weights"});
    Case& backward = add_backward(cases, s, s.label())
                         .tolerance(1e-5)
                         .property("documents alone", documents_alone(back))
                         .property("chunks", chunks_equal_whole(query_back));
    if (s.top_k >= s.tokens()) {
      forward.property("all chosen", all_chosen_equals_all({"kl", "index_lse", "target_sum"}));
      backward.property("all chosen", all_chosen_equals_all({"d_index_q", "d_index_k", "d_index_weights"}));
    }
  }
  const CaseSize same{{0, 100}, 1, 1, 1, 1, 1, 0};
  // Relative errors mean nothing here: the property has the absolute one.
  Case& zero = add_forward(cases, same, "index scores of the target").tolerance(1e30).property("loss 0", zero_at_its_target);
  for (const char* name : {"index_q", "index_k", "q", "latent"}) zero.data.tensor(name).fill = Fill::constant(1);
  std::vector<double> keys;
  for (int i = 0; i < 100; ++i) keys.push_back(0.03125 * (i % 37) + 0.25);
  zero.data.tensor("index_k").fill = zero.data.tensor("latent").fill = Fill::values(keys);
  zero.data.tensor("index_weights").fill = Fill::constant(1);
  zero.data.tensor("q_rope").fill = Fill::constant(0);
  zero.number("index_scale", 1).number("scale", 1);
  // Attention that pays nothing to the keys leaves no loss and no gradient.
  const CaseSize small{{0, 9}, 2, 3, 2, 3, 2, 3};
  Case& nothing = add_forward(cases, small, "no target").tolerance(5e-6);
  nothing.data.tensor("lse").fill = Fill::constant(1e4);
  Case& nothing_back = add_backward(cases, small, "no target").tolerance(0);
  nothing_back.data.tensor("target_sum").fill = Fill::constant(0);
  add_forward(cases, small, "bad input")
      .tolerance(5e-6)
      .property("no key",
                refused([](CaseData& data) { data.values["counts"][4] = 0; }, "counts: expected from 1 to 3 keys, given 0 for query 4"))
      .property("heads", refused(
                             [](CaseData& data) {
                               data.tensor("lse").shape = {6, 3};
                             },
                             "lse: expected shape [queries 9 as in index_q"));

  for (const CaseSize& s : {CaseSize{{0, 1024}, 8, 32, 4, 64, 32, 0}, {{0, 4096}, 8, 32, 4, 64, 32, 512}}) {
    double pairs = 0;
    for (int64_t t = 0; t < s.tokens(); ++t) pairs += static_cast<double>(s.top_k > 0 ? std::min(s.top_k, t + 1) : t + 1);
    const double index = 2 * static_cast<double>(s.index_heads * s.index_width);
    const double attention = 2 * static_cast<double>(s.heads * (s.latent_width + s.rope_width));
    add_forward(cases, s, s.label()).bench(pairs * (index + attention), 0);
    add_backward(cases, s, s.label()).bench(pairs * (3 * index + attention), 0);
  }
}

}  // namespace trilithon::indexer_kl
