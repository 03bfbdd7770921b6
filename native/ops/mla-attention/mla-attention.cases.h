#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/choices.h"
#include "harness/refusal.h"
#include "harness/sequences.h"

namespace trilithon::mla_attention {

struct CaseSize {
  std::vector<double> starts;  // of documents
  int64_t heads, latent_width, rope_width;
  int64_t top_k;  // 0: all keys

  int64_t tokens() const { return static_cast<int64_t>(starts.back()); }
  int64_t documents() const { return static_cast<int64_t>(starts.size()) - 1; }
  std::string label() const {
    return size_label({documents(), tokens(), heads, latent_width, rope_width}) + " top " + std::to_string(top_k);
  }
};

inline Case& add_lists(Case& item, const CaseSize& s) { return s.top_k == 0 ? item : add_choice(item, s.starts, s.top_k); }

inline Case& add_forward(CaseList& cases, const CaseSize& s, const std::string& label) {
  Case& item = cases.add("mla-attention.forward", label)
                   .input("q", {s.tokens(), s.heads, s.latent_width})
                   .input("q_rope", {s.tokens(), s.heads, s.rope_width})
                   .input("latent", {s.tokens(), s.latent_width})
                   .input("rope", {s.tokens(), s.rope_width})
                   .input("document_starts", {s.documents() + 1}, Fill::values(s.starts), DType::i32)
                   .output("out", {s.tokens(), s.heads, s.latent_width})
                   .output("lse", {s.tokens(), s.heads})
                   .number("scale", 1 / std::sqrt(static_cast<double>(s.latent_width + s.rope_width)));
  return add_lists(item, s);
}

inline Case& add_backward(CaseList& cases, const CaseSize& s, const std::string& label) {
  Case& item = cases.add("mla-attention.backward", label)
                   .input("d_out", {s.tokens(), s.heads, s.latent_width})
                   .input("q", {s.tokens(), s.heads, s.latent_width})
                   .input("q_rope", {s.tokens(), s.heads, s.rope_width})
                   .input("latent", {s.tokens(), s.latent_width})
                   .input("rope", {s.tokens(), s.rope_width})
                   .input("out", {s.tokens(), s.heads, s.latent_width}, Fill::normal(0, 0.3))
                   .input("lse", {s.tokens(), s.heads}, Fill::uniform(3, 5))
                   .input("document_starts", {s.documents() + 1}, Fill::values(s.starts), DType::i32)
                   .output("d_q", {s.tokens(), s.heads, s.latent_width})
                   .output("d_q_rope", {s.tokens(), s.heads, s.rope_width})
                   .output("d_latent", {s.tokens(), s.latent_width})
                   .output("d_rope", {s.tokens(), s.rope_width})
                   .number("scale", 1 / std::sqrt(static_cast<double>(s.latent_width + s.rope_width)));
  return add_lists(item, s);
}

// The same lists, but handed over in such a way that the kernel cannot see that they hold every key: one key more in each document,
// which nobody chooses. Sums over a list must equal those over positions.
inline std::string list_equals_positions(const PropertyContext& context) {
  const Outcome want = context.run(context.data);
  CaseData shifted = context.data;
  // Position 0 becomes a key of NaN, and every list moves up by one.
  for (const char* name : {"latent", "rope"}) {
    TensorSpec& spec = shifted.tensor(name);
    std::vector<double>& values = shifted.values[name];
    values.insert(values.begin(), static_cast<size_t>(spec.shape[1]), std::numeric_limits<double>::quiet_NaN());
    ++spec.shape[0];
  }
  const int64_t tokens = shifted.tensor("q").shape[0];
  for (double& index : shifted.values["indices"]) index += index >= 0 ? 1 : 0;
  sequences::set_integers(shifted, "document_starts", {2}, {0, static_cast<double>(tokens + 1)});
  sequences::set_integers(shifted, "chunk_starts", {2}, {0, static_cast<double>(tokens)});
  sequences::set_integers(shifted, "chunk_documents", {1}, {0});
  sequences::set_integers(shifted, "chunk_positions", {1}, {1});
  const Outcome got = context.run(shifted);
  const std::string difference = compare_bits(got["out"], want["out"]);
  return difference.empty() ? compare_bits(got["lse"], want["lse"]) : difference;
}

inline void add_bad_input(CaseList& cases) {
  const CaseSize size{{0, 3, 8}, 2, 4, 2, 2};
  const auto list = [](size_t slot, double value) { return [=](CaseData& data) { data.values["indices"][slot] = value; }; };
  const auto count = [](size_t query, double value) { return [=](CaseData& data) { data.values["counts"][query] = value; }; };
  add_forward(cases, size, "bad input")
      .tolerance(4e-6)
      .property("a future key",
                refused(list(9, 2), "indices: expected ascending positions that the query sees, given 2 for query 4 at position 1"))
      .property("a negative key", refused(list(14, -1), "given -1 for query 7 at position 4, entry 0"))
      .property("twice the same key",
                refused([](CaseData& data) { data.values["indices"][15] = data.values["indices"][14]; }, "for query 7"))
      .property("no key", refused(count(2, 0), "counts: expected from 1 to 2 keys, given 0 for query 2 at position 2"))
      .property("too many keys", refused(count(3, 2), "counts: expected from 1 to 1 keys, given 2 for query 3 at position 0"))
      .property("no counts",
                refused([](CaseData& data) { sequences::drop(data, "counts"); }, "counts: expected indices and counts together"))
      .property("too few rows", refused(
                                    [](CaseData& data) {
                                      sequences::keep_rows(data, {"indices"}, {{0, 7}});
                                    },
                                    "indices: expected shape [queries 8, top_k]"));
}

inline void add_cases(CaseList& cases) {
  const SequenceNames dense_names{{"q", "q_rope", "out", "lse"}, {"latent", "rope"}, {"out", "lse"}};
  const SequenceNames chosen_names{{"q", "q_rope", "out", "lse", "indices", "counts"}, {"latent", "rope"}, {"out", "lse"}};
  const std::vector<std::string> gradients{"d_q", "d_q_rope", "d_latent", "d_rope"};
  for (const CaseSize& s : {CaseSize{{0, 1}, 1, 1, 1, 0},
                            {{0, 5, 5, 6, 20}, 2, 7, 3, 4},
                            {{0, 70, 139}, 4, 32, 16, 0},
                            {{0, 70, 139}, 4, 32, 16, 16},
                            {{0, 90, 91}, 20, 33, 5, 80},
                            {{0, 1, 100}, 70, 16, 8, 33},
                            {{0, 40}, 3, 16, 8, 64}}) {
    const SequenceNames& names = s.top_k > 0 ? chosen_names : dense_names;
    Case& forward = add_forward(cases, s, s.label())
                        .tolerance(4e-6)
                        .property("documents alone", documents_alone(names))
                        .property("chunks", chunks_equal_whole(names))
                        .property("pages of 1", pages_equal_packed(names, "mla-attention.paged", 1, 30))
                        .property("pages of 24", pages_equal_packed(names, "mla-attention.paged", 24, 60));
    if (s.tokens() <= 139 && s.heads <= 4) forward.gradient("mla-attention.backward", {"q", "q_rope", "latent", "rope"});
    SequenceNames back = names;
    back.queries = {"d_out", "q", "q_rope", "out", "lse", "d_q", "d_q_rope"};
    if (s.top_k > 0) back.queries.insert(back.queries.end(), {"indices", "counts"});
    back.keys = {"latent", "rope", "d_latent", "d_rope"};
    back.outputs = gradients;
    SequenceNames query_back = back;
    query_back.outputs = {"d_q", "d_q_rope"};
    Case& backward = add_backward(cases, s, s.label())
                         .tolerance(1e-5)
                         .property("documents alone", documents_alone(back))
                         .property("chunks", chunks_equal_whole(query_back));
    if (s.top_k >= s.tokens()) {
      forward.property("all chosen", all_chosen_equals_all({"out", "lse"})).property("list", list_equals_positions);
      backward.property("all chosen", all_chosen_equals_all(gradients));
    }
  }
  // More than one segment of keys, of positions and of lists; more keys than one backward task takes.
  for (const int64_t top_k : {0, 1040}) {
    const CaseSize longer{{0, 1060}, 1, 3, 1, top_k};
    add_forward(cases, longer, longer.label())
        .tolerance(4e-6)
        .property("pages of 48", pages_equal_packed(top_k > 0 ? chosen_names : dense_names, "mla-attention.paged", 48, 500));
  }
  const CaseSize wide{{0, 700}, 2, 4, 2, 200};
  add_backward(cases, wide, wide.label()).tolerance(1e-5);
  const CaseSize sliced{{0, 9, 30}, 4, 12, 6, 8};
  add_forward(cases, sliced, "strided")
      .head_pitch("q", 18)
      .head_pitch("q_rope", 18)
      .pitch("latent", 18)
      .pitch("rope", 18)
      .pitch("out", 60)
      .tolerance(4e-6);
  add_backward(cases, sliced, "strided")
      .head_pitch("d_q", 18)
      .head_pitch("d_q_rope", 20)
      .pitch("d_latent", 18)
      .pitch("d_rope", 18)
      .tolerance(1e-5);
  add_bad_input(cases);

  for (const CaseSize& s : {CaseSize{{0, 1024}, 16, 512, 64, 0}, {{0, 2048}, 16, 512, 64, 256}, {{0, 4096}, 4, 64, 32, 512}}) {
    double pairs = 0;
    for (int64_t t = 0; t < s.tokens(); ++t) pairs += static_cast<double>((s.top_k > 0 ? std::min(s.top_k, t + 1) : t + 1) * s.heads);
    const double width = static_cast<double>(s.latent_width + s.rope_width), value = static_cast<double>(s.latent_width);
    add_forward(cases, s, s.label()).bench(2 * pairs * (width + value), 0);
    add_backward(cases, s, s.label()).bench(2 * pairs * (3 * width + 2 * value), 0);
  }
}

}  // namespace trilithon::mla_attention
