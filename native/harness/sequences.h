// Properties that every op over sequences must have, bit for bit: a document packed among others equals it alone, any chunks of
// queries equal the whole, and keys in pages equal packed keys. What a query must not see is filled with NaN in these calls.
#pragma once

#include <cmath>
#include <limits>
#include <utility>

#include "harness/execute.h"

namespace trilithon {

// The arguments of a packed case by what their rows are.
struct SequenceNames {
  std::vector<std::string> queries;  // one row per query, outputs included
  std::vector<std::string> keys;     // one row per key, outputs included
  std::vector<std::string> outputs;  // compared
};

namespace sequences {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

inline std::vector<double>& find(CaseData& data, const std::string& name) { return data.values[name]; }

inline int64_t row_width(const CaseData& data, const TensorSpec& spec) {
  return static_cast<int64_t>(data.values.at(spec.name).size()) / std::max<int64_t>(1, spec.shape[0]);
}

// Keeps these ranges of rows of the named tensors, one after another.
inline void keep_rows(CaseData& data, const std::vector<std::string>& names, const Ranges& ranges) {
  int64_t rows = 0;
  for (const auto& [begin, end] : ranges) rows += end - begin;
  for (const std::string& name : names) {
    TensorSpec& spec = data.tensor(name);
    if (data.values.contains(name)) {
      const std::vector<double> all = data.values.at(name);
      const int64_t width = row_width(data, spec);
      std::vector<double> kept;
      for (const auto& [begin, end] : ranges) kept.insert(kept.end(), all.begin() + begin * width, all.begin() + end * width);
      data.values[name] = std::move(kept);
    }
    spec.shape[0] = rows;
  }
}

inline void fill_rows(CaseData& data, const std::vector<std::string>& names, int64_t begin, int64_t end, double value) {
  for (const std::string& name : names) {
    if (!data.values.contains(name)) continue;
    std::vector<double>& list = data.values.at(name);
    const int64_t width = row_width(data, data.tensor(name));
    std::fill(list.begin() + begin * width, list.begin() + end * width, value);
  }
}

inline void set_integers(CaseData& data, const std::string& name, std::vector<int64_t> shape, std::vector<double> values) {
  for (size_t i = 0; i < data.tensors.size(); ++i) {
    if (data.tensors[i].name == name) data.tensors.erase(data.tensors.begin() + static_cast<std::ptrdiff_t>(i--));
  }
  data.tensors.push_back({name, std::move(shape), DType::i32, {}});
  data.values[name] = std::move(values);
}

inline void drop(CaseData& data, const std::string& name) {
  std::erase_if(data.tensors, [&](const TensorSpec& spec) { return spec.name == name; });
  data.values.erase(name);
}

inline std::string compare_part(const Outcome& part, const Outcome& whole, const std::string& name, int64_t part_begin, int64_t whole_begin,
                                int64_t rows, const std::string& where) {
  const GuardedTensor &got = part[name], &want = *whole.tensors.at(name);
  const int64_t width = want.view().row_elements();
  for (int64_t i = 0; i < rows * width; ++i) {
    const int64_t a = part_begin * width + i, b = whole_begin * width + i;
    if (got.bits(a) == want.bits(b) || (got.is_nan(a) && want.is_nan(b))) continue;
    return where + ": " + name + want.coordinate(b) + " of the whole is " + std::to_string(want.value(b)) + ", here " +
           std::to_string(got.value(a));
  }
  return {};
}

}  // namespace sequences

// Each document alone. The outputs may have rows of queries or of keys.
inline Property documents_alone(SequenceNames names) {
  return [names](const PropertyContext& context) -> std::string {
    const Outcome whole = context.run(context.data);
    const std::vector<double> starts = context.data.values.at("document_starts");
    for (size_t d = 0; d + 1 < starts.size(); ++d) {
      const int64_t begin = static_cast<int64_t>(starts[d]), end = static_cast<int64_t>(starts[d + 1]);
      if (begin == end) continue;
      CaseData part = context.data;
      sequences::keep_rows(part, names.queries, {{begin, end}});
      sequences::keep_rows(part, names.keys, {{begin, end}});
      sequences::set_integers(part, "document_starts", {2}, {0, static_cast<double>(end - begin)});
      const Outcome alone = context.run(part);
      for (const std::string& name : names.outputs) {
        const std::string difference =
            sequences::compare_part(alone, whole, name, 0, begin, end - begin, "document " + std::to_string(d) + " alone");
        if (!difference.empty()) return difference;
      }
    }
    return {};
  };
}

// Some chunks of the queries, with all keys of their documents, as context parallelism calls it.
inline Property chunks_equal_whole(SequenceNames names) {
  return [names](const PropertyContext& context) -> std::string {
    const Outcome whole = context.run(context.data);
    const std::vector<double> starts = context.data.values.at("document_starts");
    for (int attempt = 0; attempt < 3; ++attempt) {
      CaseData part = context.data;
      sequences::Ranges ranges;
      std::vector<double> chunk_starts{0}, documents, positions;
      for (size_t d = 0; d + 1 < starts.size(); ++d) {
        const int64_t begin = static_cast<int64_t>(starts[d]), end = static_cast<int64_t>(starts[d + 1]);
        int64_t seen = 0;
        for (int64_t at = begin; at < end;) {
          const int64_t next = std::min(end, at + 1 + context.random.below(attempt == 0 ? 3 : 90));
          if (attempt == 2 || context.random.below(3) > 0) {
            ranges.emplace_back(at, next);
            chunk_starts.push_back(chunk_starts.back() + static_cast<double>(next - at));
            documents.push_back(static_cast<double>(d));
            positions.push_back(static_cast<double>(at - begin));
            seen = next - begin;
          }
          at = next;
        }
        sequences::fill_rows(part, names.keys, begin + seen, end, std::numeric_limits<double>::quiet_NaN());
      }
      if (ranges.empty()) continue;
      const int64_t chunks = static_cast<int64_t>(documents.size());
      sequences::keep_rows(part, names.queries, ranges);
      sequences::set_integers(part, "chunk_starts", {chunks + 1}, chunk_starts);
      sequences::set_integers(part, "chunk_documents", {chunks}, documents);
      sequences::set_integers(part, "chunk_positions", {chunks}, positions);
      const Outcome outcome = context.run(part);
      for (size_t c = 0; c < ranges.size(); ++c) {
        for (const std::string& name : names.outputs) {
          const std::string difference =
              sequences::compare_part(outcome, whole, name, static_cast<int64_t>(chunk_starts[c]), ranges[c].first,
                                      ranges[c].second - ranges[c].first, "chunk " + std::to_string(c) + " of the queries");
          if (!difference.empty()) return difference;
        }
      }
    }
    return {};
  };
}

// The documents as sequences in pages of `block_size`, fed chunk by chunk (of at most `largest` queries) to the paged entry. Key
// tensor `x` is argument `x_pages` there.
inline Property pages_equal_packed(SequenceNames names, std::string paged_entry, int64_t block_size, int64_t largest) {
  return [=](const PropertyContext& context) -> std::string {
    const Outcome whole = context.run(context.data);
    const std::vector<double> starts = context.data.values.at("document_starts");
    const int64_t documents = static_cast<int64_t>(starts.size()) - 1;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    int64_t columns = 1, pages = 3;
    std::vector<int64_t> lengths;
    for (int64_t d = 0; d < documents; ++d) {
      lengths.push_back(static_cast<int64_t>(starts[static_cast<size_t>(d) + 1] - starts[static_cast<size_t>(d)]));
      const int64_t needed = (lengths.back() + block_size - 1) / block_size;
      columns = std::max(columns, needed + 1);
      pages += needed;
    }
    std::vector<int64_t> order(static_cast<size_t>(pages));
    for (int64_t i = 0; i < pages; ++i) order[static_cast<size_t>(i)] = i;
    for (int64_t i = pages - 1; i > 0; --i)
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(context.random.below(i + 1))]);
    std::vector<double> table(static_cast<size_t>(documents * columns), -1.0);
    size_t taken = 0;
    for (int64_t d = 0; d < documents; ++d) {
      for (int64_t i = 0; i < (lengths[static_cast<size_t>(d)] + block_size - 1) / block_size; ++i)
        table[static_cast<size_t>(d * columns + i)] = static_cast<double>(order[taken++]);
    }

    std::vector<int64_t> done(static_cast<size_t>(documents), 0);
    while (done != lengths) {
      CaseData call = context.data;
      sequences::Ranges ranges;
      std::vector<double> query_starts{0}, contexts;
      for (int64_t d = 0; d < documents; ++d) {
        int64_t& at = done[static_cast<size_t>(d)];
        const int64_t next = std::min(lengths[static_cast<size_t>(d)], at + context.random.below(largest + 1));
        const int64_t begin = static_cast<int64_t>(starts[static_cast<size_t>(d)]);
        ranges.emplace_back(begin + at, begin + next);
        query_starts.push_back(query_starts.back() + static_cast<double>(next - at));
        contexts.push_back(static_cast<double>(next));
        at = next;
      }
      if (query_starts.back() == 0) continue;
      for (const std::string& name : names.keys) {
        TensorSpec spec = call.tensor(name);
        const std::vector<double> rows = call.values.at(name);
        const int64_t width = static_cast<int64_t>(rows.size()) / spec.shape[0];
        std::vector<double> values(static_cast<size_t>(pages * block_size * width), nan);
        for (int64_t d = 0; d < documents; ++d) {
          for (int64_t j = 0; j < static_cast<int64_t>(contexts[static_cast<size_t>(d)]); ++j) {
            const int64_t page = static_cast<int64_t>(table[static_cast<size_t>(d * columns + j / block_size)]);
            const int64_t row = static_cast<int64_t>(starts[static_cast<size_t>(d)]) + j;
            std::copy_n(rows.begin() + row * width, width, values.begin() + (page * block_size + j % block_size) * width);
          }
        }
        sequences::drop(call, name);
        spec.name = name + "_pages";
        spec.pitch = 0;
        spec.head_pitch = 0;
        spec.shape[0] = pages;
        spec.shape.insert(spec.shape.begin() + 1, block_size);
        call.values[spec.name] = std::move(values);
        call.tensors.push_back(std::move(spec));
      }
      sequences::keep_rows(call, names.queries, ranges);
      sequences::drop(call, "document_starts");
      sequences::set_integers(call, "query_starts", {documents + 1}, query_starts);
      sequences::set_integers(call, "context_lengths", {documents}, contexts);
      sequences::set_integers(call, "block_table", {documents, columns}, table);
      const Outcome outcome = context.run(paged_entry.c_str(), call);
      for (size_t d = 0; d < ranges.size(); ++d) {
        for (const std::string& name : names.outputs) {
          const std::string difference = sequences::compare_part(
              outcome, whole, name, static_cast<int64_t>(query_starts[d]), ranges[d].first, ranges[d].second - ranges[d].first,
              "pages of " + std::to_string(block_size) + ", sequence " + std::to_string(d) + " from row " +
                  std::to_string(ranges[d].first - static_cast<int64_t>(starts[d])));
          if (!difference.empty()) return difference;
        }
      }
    }
    return {};
  };
}

}  // namespace trilithon
