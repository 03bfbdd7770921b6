#include "include/sequences.h"

#include <algorithm>
#include <string>

#include "include/check.h"

namespace trilithon {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

// Starts of consecutive ranges: from 0, never falling, up to `total`.
Status check_starts(const char* op, const char* argument, const TensorView& starts, int64_t total, const char* rows) {
  const int32_t* values = starts.as<int32_t>();
  const int64_t count = starts.shape[0];
  if (values[0] != 0) return invalid_argument(op, argument, "0 as its first element", text(values[0]));
  for (int64_t i = 1; i < count; ++i) {
    if (values[i] < values[i - 1]) {
      return invalid_argument(op, argument, "elements that do not fall", text(values[i]) + " after " + text(values[i - 1]));
    }
  }
  if (values[count - 1] != total) {
    return invalid_argument(op, argument, "the number of " + std::string(rows) + ", " + text(total) + ", as its last element",
                            text(values[count - 1]));
  }
  return {};
}

}  // namespace

int64_t chunk_count(const PackedSequences& sequences) {
  const TensorView& starts = sequences.chunk_starts.present() ? sequences.chunk_starts : sequences.document_starts;
  return starts.rank == 1 ? starts.shape[0] - 1 : 0;
}

int64_t chunk_count(const PagedSequences& sequences) { return sequences.query_starts.rank == 1 ? sequences.query_starts.shape[0] - 1 : 0; }

Status resolve_chunks(const char* op, const PackedSequences& sequences, int64_t queries, int64_t keys, Chunk* chunks) {
  Check check(op);
  Dim documents("documents + 1"), starts("chunks + 1"), count("chunks");
  check.shape("document_starts", sequences.document_starts, {&documents});
  check.shape("chunk_starts", sequences.chunk_starts, {&starts});
  const bool chunked = sequences.chunk_starts.present();
  if (chunked) {
    count.value = starts - 1;
    count.bound_by = "chunk_starts";
  }
  check.that(sequences.chunk_documents.present() == chunked && sequences.chunk_positions.present() == chunked, "chunk_starts",
             "chunk_starts, chunk_documents and chunk_positions together or none of them", "some of them");
  check.shape("chunk_documents", sequences.chunk_documents, {&count});
  check.shape("chunk_positions", sequences.chunk_positions, {&count});
  if (!check.ok()) return check.status();
  if (Status status = check_starts(op, "document_starts", sequences.document_starts, keys, "keys"); !status.ok()) return status;

  const int32_t* begins = sequences.document_starts.as<int32_t>();
  if (!chunked) {
    if (queries != keys) return invalid_argument(op, "chunk_starts", "chunks, for there are fewer or more queries than keys", "nothing");
    for (int64_t d = 0; d < documents - 1; ++d) {
      const int64_t length = begins[d + 1] - begins[d];
      chunks[d] = {begins[d], length, 0, d, begins[d], length};
    }
    return {};
  }
  if (Status status = check_starts(op, "chunk_starts", sequences.chunk_starts, queries, "queries"); !status.ok()) return status;
  const int32_t* rows = sequences.chunk_starts.as<int32_t>();
  for (int64_t c = 0; c < count; ++c) {
    const int64_t document = sequences.chunk_documents.as<int32_t>()[c], position = sequences.chunk_positions.as<int32_t>()[c];
    const std::string which = " in chunk " + text(c);
    if (document < 0 || document >= documents - 1) {
      return invalid_argument(op, "chunk_documents", "a document from 0 to " + text(documents - 2), text(document) + which);
    }
    const int64_t queries_here = rows[c + 1] - rows[c], length = begins[document + 1] - begins[document];
    if (position < 0 || position + queries_here > length) {
      return invalid_argument(op, "chunk_positions", "positions within the document's " + text(length) + " keys",
                              text(position) + " for " + text(queries_here) + " queries" + which);
    }
    // Gradients of keys are summed over chunks in their order, which must be that of positions.
    if (c > 0 && (document < chunks[c - 1].document ||
                  (document == chunks[c - 1].document && position < chunks[c - 1].position + chunks[c - 1].query_count))) {
      return invalid_argument(op, "chunk_positions", "chunks in the order of documents and positions, without overlap",
                              "document " + text(document) + ", position " + text(position) + which);
    }
    chunks[c] = {rows[c], queries_here, position, document, begins[document], length};
  }
  return {};
}

Status resolve_chunks(const char* op, const PagedSequences& sequences, int64_t queries, int64_t pages, int64_t block_size, Chunk* chunks) {
  Check check(op);
  Dim starts("sequences + 1"), count("sequences"), columns("pages");
  check.shape("query_starts", sequences.query_starts, {&starts});
  if (check.ok()) {
    count.value = starts - 1;
    count.bound_by = "query_starts";
  }
  check.shape("context_lengths", sequences.context_lengths, {&count});
  check.shape("block_table", sequences.block_table, {&count, &columns});
  if (!check.ok()) return check.status();
  if (Status status = check_starts(op, "query_starts", sequences.query_starts, queries, "queries"); !status.ok()) return status;

  const int32_t* rows = sequences.query_starts.as<int32_t>();
  for (int64_t s = 0; s < count; ++s) {
    const int64_t length = sequences.context_lengths.as<int32_t>()[s], queries_here = rows[s + 1] - rows[s];
    const std::string which = " for sequence " + text(s);
    if (length < queries_here) {
      return invalid_argument(op, "context_lengths", "at least the sequence's " + text(queries_here) + " queries", text(length) + which);
    }
    const int64_t needed = (length + block_size - 1) / block_size;
    if (needed > columns) {
      return invalid_argument(op, "context_lengths", "at most the " + text(columns * block_size) + " keys of " + text(columns) + " pages",
                              text(length) + which);
    }
    // Entries behind the context may hold anything.
    for (int64_t i = 0; i < needed && queries_here > 0; ++i) {
      const int64_t page = sequences.block_table.at<int32_t>(s, i);
      if (page < 0 || page >= pages) {
        return invalid_argument(op, "block_table", "pages from 0 to " + text(pages - 1), text(page) + which + ", entry " + text(i));
      }
    }
    chunks[s] = {rows[s], queries_here, length - queries_here, s, 0, length};
  }
  return {};
}

Extent extent_of(const Chunk* chunks, int64_t count) {
  Extent extent;
  for (int64_t c = 0; c < count; ++c) {
    if (chunks[c].query_count == 0) continue;
    extent.queries = std::max(extent.queries, chunks[c].query_count);
    extent.keys = std::max(extent.keys, chunks[c].position + chunks[c].query_count);
  }
  return extent;
}

int64_t count_tasks(const Chunk* chunks, int64_t count, int64_t tokens_per_task, int64_t parts, int64_t* first_task) {
  int64_t tasks = 0;
  for (int64_t c = 0; c < count; ++c) {
    first_task[c] = tasks;
    tasks += (chunks[c].query_count + tokens_per_task - 1) / tokens_per_task * parts;
  }
  first_task[count] = tasks;
  return tasks;
}

int64_t document_count(const PackedSequences& sequences) {
  return sequences.document_starts.rank == 1 ? sequences.document_starts.shape[0] - 1 : 0;
}

int64_t count_key_tasks(const KeyTasks& tasks, const Chunk* chunks, int64_t count, int64_t keys_per_task, int64_t parts) {
  int64_t total = 0, chunk = 0;
  for (int64_t d = 0; d < tasks.documents; ++d) {
    tasks.first_task[d] = total;
    tasks.document_chunks[d] = chunk;
    total += (tasks.document_starts[d + 1] - tasks.document_starts[d] + keys_per_task - 1) / keys_per_task * parts;
    while (chunk < count && chunks[chunk].document == d) ++chunk;
  }
  tasks.first_task[tasks.documents] = total;
  tasks.document_chunks[tasks.documents] = chunk;
  return total;
}

}  // namespace trilithon
