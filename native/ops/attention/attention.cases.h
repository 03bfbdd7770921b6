#pragma once

#include <cmath>
#include <limits>
#include <numeric>

#include "harness/case.h"
#include "harness/refusal.h"
#include "harness/sequences.h"

namespace trilithon::attention {

struct CaseSize {
  std::vector<double> starts;  // of documents
  int64_t heads, kv_heads, width, value_width;

  int64_t tokens() const { return static_cast<int64_t>(starts.back()); }
  int64_t documents() const { return static_cast<int64_t>(starts.size()) - 1; }
  std::string label() const { return size_label({documents(), tokens(), heads, kv_heads, width, value_width}); }
};

inline Case& add_forward(CaseList& cases, const CaseSize& s, const std::string& label) {
  return cases.add("attention.forward", label)
      .input("q", {s.tokens(), s.heads, s.width})
      .input("k", {s.tokens(), s.kv_heads, s.width})
      .input("v", {s.tokens(), s.kv_heads, s.value_width})
      .input("document_starts", {s.documents() + 1}, Fill::values(s.starts), DType::i32)
      .output("out", {s.tokens(), s.heads, s.value_width})
      .output("lse", {s.tokens(), s.heads})
      .number("scale", 1 / std::sqrt(static_cast<double>(s.width)));
}

// A stand-in for the log-sum-exp: near what such scores give, so that weights have ordinary sizes.
inline Case& add_backward(CaseList& cases, const CaseSize& s, const std::string& label) {
  return cases.add("attention.backward", label)
      .input("d_out", {s.tokens(), s.heads, s.value_width})
      .input("q", {s.tokens(), s.heads, s.width})
      .input("k", {s.tokens(), s.kv_heads, s.width})
      .input("v", {s.tokens(), s.kv_heads, s.value_width})
      .input("out", {s.tokens(), s.heads, s.value_width}, Fill::normal(0, 0.3))
      .input("lse", {s.tokens(), s.heads}, Fill::uniform(3, 5))
      .input("document_starts", {s.documents() + 1}, Fill::values(s.starts), DType::i32)
      .output("d_q", {s.tokens(), s.heads, s.width})
      .output("d_k", {s.tokens(), s.kv_heads, s.width})
      .output("d_v", {s.tokens(), s.kv_heads, s.value_width})
      .number("scale", 1 / std::sqrt(static_cast<double>(s.width)));
}

// Pairs of a query row and a key that it sees, over all heads.
inline double pairs_of(const CaseSize& s) {
  double pairs = 0;
  for (size_t d = 0; d + 1 < s.starts.size(); ++d) {
    const double length = s.starts[d + 1] - s.starts[d];
    pairs += length * (length + 1) / 2;
  }
  return pairs * static_cast<double>(s.heads);
}

// One query of each of some sequences with so many keys, in pages of 16 that lie anywhere.
struct Decoding {
  int64_t sequences, keys, heads, kv_heads, width;
};

inline Case& add_decoding(CaseList& cases, const Decoding& d) {
  const int64_t block_size = 16, columns = (d.keys + block_size - 1) / block_size;
  std::vector<double> table(static_cast<size_t>(d.sequences * columns)), starts(static_cast<size_t>(d.sequences + 1));
  std::iota(starts.begin(), starts.end(), 0.0);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<double>(i * 7919 % table.size());
  const auto number = [](int64_t value) { return std::to_string(value); };
  return cases
      .add("attention.paged", number(d.sequences) + " sequences x " + number(d.keys) + ", heads " + number(d.heads) + "/" +
                                  number(d.kv_heads) + ", width " + number(d.width))
      .input("q", {d.sequences, d.heads, d.width})
      .input("k_pages", {d.sequences * columns, block_size, d.kv_heads, d.width})
      .input("v_pages", {d.sequences * columns, block_size, d.kv_heads, d.width})
      .input("query_starts", {d.sequences + 1}, Fill::values(starts), DType::i32)
      .input("context_lengths", {d.sequences}, Fill::values(std::vector<double>(starts.size() - 1, static_cast<double>(d.keys))),
             DType::i32)
      .input("block_table", {d.sequences, columns}, Fill::values(table), DType::i32)
      .output("out", {d.sequences, d.heads, d.width})
      .number("scale", 1 / std::sqrt(static_cast<double>(d.width)));
}

// Up to four queries of each of `sequences` sequences, whose lengths are those around whole vectors and whole blocks of keys.
inline void add_small_groups(CaseList& cases, const SequenceNames& names) {
  for (const int64_t group : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const CaseSize s{{0, 15, 31, 48, 113}, group, 1, 13 + 3 * group, 8 * group};
    add_forward(cases, s, s.label())
        .tolerance(4e-6)
        .property("chunks", chunks_equal_whole(names))
        .property("pages of 16", pages_equal_packed(names, "attention.paged", 16, 3))
        .property("pages of 20", pages_equal_packed(names, "attention.paged", 20, 6));
  }
  for (const int64_t sequences : {1, 2, 7, 33, 64}) {
    const int64_t lengths[] = {1, 15, 16, 17, 31, 47, 63, 64, 65, 81, 127, 129}, block_size = 8, columns = 17, heads = 4, kv_heads = 2,
                  width = 20;
    std::vector<double> starts{0}, contexts, table;
    for (int64_t i = 0; i < sequences; ++i) {
      const int64_t length = lengths[(i + sequences) % 12];
      starts.push_back(starts.back() + static_cast<double>(std::min(length, 1 + i % 4)));
      contexts.push_back(static_cast<double>(length));
      for (int64_t j = 0; j < columns; ++j) table.push_back(static_cast<double>((i * columns + j) * 7 % (sequences * columns)));
    }
    const int64_t queries = static_cast<int64_t>(starts.back());
    cases.add("attention.paged", std::to_string(sequences) + " short sequences")
        .input("q", {queries, heads, width})
        .input("k_pages", {sequences * columns, block_size, kv_heads, width})
        .input("v_pages", {sequences * columns, block_size, kv_heads, width})
        .input("query_starts", {sequences + 1}, Fill::values(starts), DType::i32)
        .input("context_lengths", {sequences}, Fill::values(contexts), DType::i32)
        .input("block_table", {sequences, columns}, Fill::values(table), DType::i32)
        .output("out", {queries, heads, width})
        .output("lse", {queries, heads})
        .number("scale", 0.3)
        .tolerance(4e-6);
  }
}

inline void add_bad_input(CaseList& cases) {
  const CaseSize size{{0, 3, 8}, 4, 2, 6, 5};
  const auto starts = [](std::vector<double> values) {
    return [values](CaseData& data) { sequences::set_integers(data, "document_starts", {static_cast<int64_t>(values.size())}, values); };
  };
  add_forward(cases, size, "bad input")
      .tolerance(4e-6)
      .property("starts that fall", refused(starts({0, 5, 3, 8}), "document_starts: expected elements that do not fall, given 3 after 5"))
      .property("starts from 1", refused(starts({1, 8}), "document_starts: expected 0 as its first element, given 1"))
      .property("starts to 9", refused(starts({0, 9}), "document_starts: expected the number of keys, 8, as its last element, given 9"))
      .property("groups", refused(
                              [](CaseData& data) {
                                for (const char* name : {"k", "v"}) {
                                  data.tensor(name).shape[1] = 1;
                                  data.values[name].resize(data.values[name].size() / 2);
                                }
                                data.tensor("q").shape = {8, 3, 8};
                                data.tensor("out").shape = {8, 3, 5};
                                data.tensor("lse").shape = {8, 3};
                              },
                              "k: expected shape [keys, kv_heads, width 8 as in q]"))
      .property("fewer queries without chunks", refused(
                                                    [](CaseData& data) {
                                                      sequences::keep_rows(data, {"q", "out", "lse"}, {{0, 4}});
                                                    },
                                                    "chunk_starts: expected chunks"))
      .property("half of the chunks", refused(
                                          [](CaseData& data) {
                                            sequences::set_integers(data, "chunk_starts", {2}, {0, 8});
                                          },
                                          "together or none of them"))
      .property("a chunk behind its document",
                refused(
                    [](CaseData& data) {
                      sequences::set_integers(data, "chunk_starts", {2}, {0, 8});
                      sequences::set_integers(data, "chunk_documents", {1}, {1});
                      sequences::set_integers(data, "chunk_positions", {1}, {0});
                    },
                    "chunk_positions: expected positions within the document's 5 keys, given 0 for 8 queries"))
      .property("no such document", refused(
                                        [](CaseData& data) {
                                          sequences::set_integers(data, "chunk_starts", {2}, {0, 8});
                                          sequences::set_integers(data, "chunk_documents", {1}, {2});
                                          sequences::set_integers(data, "chunk_positions", {1}, {0});
                                        },
                                        "chunk_documents: expected a document from 0 to 1, given 2"))
      .property("no queries at all", [](const PropertyContext& context) -> std::string {
        CaseData data = context.data;
        sequences::keep_rows(data, {"q", "out", "lse"}, {});
        sequences::set_integers(data, "chunk_starts", {1}, {0});
        sequences::set_integers(data, "chunk_documents", {0}, {});
        sequences::set_integers(data, "chunk_positions", {0}, {});
        return context.refusal(data).find("chunk_documents") != std::string::npos ? "" : "not refused by chunk_documents";
      });
  const auto paged = [](std::vector<double> contexts, std::vector<double> table) {
    return [contexts, table](CaseData& data) {
      sequences::set_integers(data, "context_lengths", {2}, contexts);
      sequences::set_integers(data, "block_table", {2, 3}, table);
    };
  };
  cases.add("attention.paged", "bad input")
      .input("q", {3, 2, 4})
      .input("k_pages", {5, 4, 1, 4})
      .input("v_pages", {5, 4, 1, 4})
      .input("query_starts", {3}, Fill::values({0, 1, 3}), DType::i32)
      .input("context_lengths", {2}, Fill::values({9, 2}), DType::i32)
      .input("block_table", {2, 3}, Fill::values({4, 0, 2, 1, -1, -1}), DType::i32)
      .output("out", {3, 2, 4})
      .number("scale", 0.5)
      .tolerance(4e-6)
      .property("no such page",
                refused(paged({9, 2}, {4, 5, 2, 1, 0, 0}), "block_table: expected pages from 0 to 4, given 5 for sequence 0, entry 1"))
      .property("too long",
                refused(paged({13, 2}, {4, 0, 2, 1, 0, 0}), "context_lengths: expected at most the 12 keys of 3 pages, given 13"))
      .property("too short",
                refused(paged({9, 1}, {4, 0, 2, 1, 0, 0}), "context_lengths: expected at least the sequence's 2 queries, given 1"));
}

inline void add_cases(CaseList& cases) {
  const SequenceNames names{{"q", "out", "lse"}, {"k", "v"}, {"out", "lse"}};
  const SequenceNames gradients{{"d_out", "q", "out", "lse", "d_q"}, {"k", "v", "d_k", "d_v"}, {"d_q", "d_k", "d_v"}};
  const SequenceNames query_gradients{{"d_out", "q", "out", "lse", "d_q"}, {"k", "v", "d_k", "d_v"}, {"d_q"}};
  for (const CaseSize& s : {CaseSize{{0, 1}, 1, 1, 1, 1},
                            {{0, 5, 5, 6, 20}, 2, 2, 7, 7},
                            {{0, 70}, 4, 2, 16, 16},
                            {{0, 64, 129, 131}, 6, 2, 33, 20},
                            {{0, 150, 151}, 16, 1, 8, 48},
                            {{0, 3, 90}, 3, 3, 80, 64}}) {
    Case& forward = add_forward(cases, s, s.label())
                        .tolerance(4e-6)
                        .property("documents alone", documents_alone(names))
                        .property("chunks", chunks_equal_whole(names))
                        .property("pages of 1", pages_equal_packed(names, "attention.paged", 1, 9))
                        .property("pages of 16", pages_equal_packed(names, "attention.paged", 16, 40))
                        .property("pages of 100", pages_equal_packed(names, "attention.paged", 100, 150));
    if (s.tokens() <= 70) forward.gradient("attention.backward", {"q", "k", "v"});
    add_backward(cases, s, s.label())
        .tolerance(1e-5)
        .property("documents alone", documents_alone(gradients))
        .property("chunks", chunks_equal_whole(query_gradients));
  }
  add_small_groups(cases, names);
  // More than one segment of keys.
  const CaseSize longer{{0, 1100}, 1, 1, 3, 4};
  add_forward(cases, longer, longer.label()).tolerance(4e-6).property("pages of 48", pages_equal_packed(names, "attention.paged", 48, 400));
  add_backward(cases, longer, longer.label()).tolerance(1e-5);
  // The weight of one key reaches 1, the others underflow; scores far below 0.
  add_forward(cases, {{0, 140}, 2, 1, 16, 16}, "scores up to 1000")
      .number("scale", 60)
      .tolerance(2e-4)
      .property("pages of 5", pages_equal_packed(names, "attention.paged", 5, 60));
  // Slices of one matrix that holds q, k and v beside each other.
  const CaseSize sliced{{0, 9, 30}, 4, 2, 12, 12};
  add_forward(cases, sliced, "strided").pitch("q", 100).pitch("k", 100).pitch("v", 100).pitch("out", 60).tolerance(4e-6);
  add_forward(cases, sliced, "strided heads").head_pitch("q", 20).head_pitch("k", 17).head_pitch("v", 31).tolerance(4e-6);
  add_backward(cases, sliced, "strided")
      .pitch("q", 100)
      .pitch("k", 100)
      .pitch("v", 100)
      .pitch("d_q", 100)
      .pitch("d_k", 100)
      .pitch("d_v", 100)
      .tolerance(1e-5);
  // NaN and infinities stay with the queries that see them.
  Case& special = add_forward(cases, {{0, 8, 24}, 2, 1, 8, 8}, "special values").tolerance(1e-5);
  special.data.tensor("k").fill = Fill::special();
  special.data.tensor("v").fill = Fill::special();
  special.property("pages of 4", pages_equal_packed(names, "attention.paged", 4, 5)).in_float();
  add_bad_input(cases);

  for (const CaseSize& s : {CaseSize{{0, 2048}, 8, 2, 128, 128}, {{0, 512, 1024, 1536, 2048}, 8, 8, 64, 64}}) {
    const double pairs = pairs_of(s), width = static_cast<double>(s.width + s.value_width);
    add_forward(cases, s, s.label()).bench(2 * pairs * width, 0);
    add_backward(cases, s, s.label()).bench(2 * pairs * (2.5 * width), 0);
  }
  for (const Decoding& d :
       {Decoding{8, 2000, 16, 8, 128}, {64, 160, 4, 2, 32}, {64, 160, 8, 1, 32}, {1, 160, 4, 2, 32}, {8, 2000, 64, 8, 128}}) {
    add_decoding(cases, d).bench(4.0 * static_cast<double>(d.sequences * d.keys * d.heads * d.width),
                                 4.0 * 2 * static_cast<double>(d.sequences * d.keys * d.kv_heads * d.width));
  }
}

}  // namespace trilithon::attention
