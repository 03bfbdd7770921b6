#include "ops/dsa-indexer/dsa-indexer.h"

#include "include/check.h"
#include "pool/chosen-keys.h"
#include "pool/scratch-arrays.h"

TRILITHON_DEFINE_KERNELS(dsa_indexer)

namespace trilithon::dsa_indexer {
namespace {

Sizes sizes_of(const TensorView& q, int64_t top_k, double scale) {
  return {q.shape[1], q.shape[2], top_k, 1, 0, static_cast<float>(scale)};
}

// Shares tasks among threads, each with scratch of its own.
template <typename Params>
Status share(const char* op, Runtime& runtime, int64_t count, int64_t scratch_bytes, const Params& params,
             void (*kernel)(const Params&, int64_t, int64_t, void*)) {
  const size_t bytes = static_cast<size_t>(scratch_bytes);
  if (Status status = reserve_thread_scratch(op, runtime, bytes); !status.ok()) return status;
  return runtime.parallel(op, count, 1,
                          [&](int64_t begin, int64_t end, int thread) { kernel(params, begin, end, runtime.scratch(thread, bytes)); });
}

// Selection over packed or paged keys. resolve(chunks) writes the chunks of the call.
template <typename Args, typename Resolve>
Status run_select(const Args& a, const TensorView& k, const KeyRows& rows, const PageMap& pages, Resolve resolve, Runtime& runtime) {
  const int64_t count = chunk_count(a.sequences);
  Chunk* chunks = nullptr;
  int64_t* first_task = nullptr;
  SelectParams params{};
  const auto reserve = [&](int64_t scores) -> Status {
    ScratchArrays arrays;
    arrays.add(chunks, count);
    arrays.add(first_task, count + 1);
    arrays.add(params.task_scores, scores);
    if (Status status = arrays.reserve(Args::name, runtime); !status.ok()) return status;
    return resolve(chunks);
  };
  if (Status status = reserve(0); !status.ok()) return status;
  if (runtime.use_reference(a.q.dtype)) {
    with_floating(a.q.dtype,
                  [&]<typename T>() { select_reference<T>(a.q, k, a.weights, pages, chunks, count, a.scale, a.indices, a.counts); });
    return {};
  }

  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  Sizes& sizes = params.sizes;
  sizes = sizes_of(a.q, a.indices.shape[1], a.scale);
  params.q = heads_of(a.q);
  params.weights = a.weights.template as<float>();
  params.weight_stride = a.weights.stride[0];
  params.k = rows;
  params.pages = pages;
  params.indices = a.indices.template as<int32_t>();
  params.counts = a.counts.template as<int32_t>();
  params.chunk_count = count;
  const Extent extent = extent_of(chunks, count);
  sizes.tokens_per_task = std::max<int64_t>(1, std::min(table.tokens_per_task(sizes), extent.queries));
  params.segments = (extent.keys + table.segment_keys() - 1) / table.segment_keys();
  // Few queries with many keys (decoding): the scores of their segments are shared out among threads and kept until the selection.
  const bool split = runtime.threads() > 1 && a.q.shape[0] < 2 * runtime.threads() && params.segments > 1 && extent.keys > sizes.top_k;
  if (split) {
    sizes.tokens_per_task = 1;
    const int64_t scores = a.q.shape[0] * params.segments * table.segment_keys();
    if (Status status = reserve(scores); !status.ok()) return status;
  }
  const int64_t tasks = count_tasks(chunks, count, sizes.tokens_per_task, 1, first_task);
  params.chunks = chunks;
  params.first_task = first_task;
  const int64_t scratch_bytes = table.select_scratch(sizes);
  if (!split) return share(Args::name, runtime, tasks, scratch_bytes, params, table.select);
  Status status = share(Args::name, runtime, tasks * params.segments, scratch_bytes, params, table.score_segment);
  if (!status.ok()) return status;
  return share(Args::name, runtime, tasks, scratch_bytes, params, table.select_scored);
}

// The checks that scores and their gradients share, and what both kernels need. Arrays are reserved for `key_tasks` if asked.
template <typename Args>
Status prepare_scores(const Args& a, const TensorView& scores, bool with_key_tasks, ScoresParams& params, Chunk*& chunks,
                      int64_t*& first_task, Runtime& runtime) {
  const int64_t count = chunk_count(a.sequences);
  params.chunk_count = count;
  params.key_tasks = {a.sequences.document_starts.template as<int32_t>(), nullptr, nullptr,
                      with_key_tasks ? document_count(a.sequences) : 0};
  ScratchArrays arrays;
  arrays.add(chunks, count);
  arrays.add(first_task, count + 1);
  arrays.add(params.key_tasks.first_task, params.key_tasks.documents + 1);
  arrays.add(params.key_tasks.document_chunks, params.key_tasks.documents + 1);
  if (Status status = arrays.reserve(Args::name, runtime); !status.ok()) return status;
  if (Status status = resolve_chunks(Args::name, a.sequences, a.q.shape[0], a.k.shape[0], chunks); !status.ok()) return status;
  if (Status status = check_chosen(Args::name, a.chosen, chunks, count, a.q.shape[0], runtime); !status.ok()) return status;
  if (runtime.use_reference(a.q.dtype)) return {};

  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  params.sizes = sizes_of(a.q, scores.shape[1], a.scale);
  params.sizes.tokens_per_task = table.tokens_per_task(params.sizes);
  params.sizes.keys_per_task = table.keys_per_task(scores.shape[1] < extent_of(chunks, count).keys);
  params.q = heads_of(a.q);
  params.weights = a.weights.template as<float>();
  params.weight_stride = a.weights.stride[0];
  params.k = packed_rows(a.k);
  params.chosen = chosen_rows(a.chosen);
  params.chunks = chunks;
  params.first_task = first_task;
  return {};
}

}  // namespace

Status run(const Select& a, Runtime& runtime) {
  Check check(Select::name);
  Dim queries("queries"), heads("index_heads"), width("width"), keys("keys"), top_k("top_k");
  check.shape("q", a.q, {&queries, &heads, &width});
  check.shape("k", a.k, {&keys, &width});
  check.shape("weights", a.weights, {&queries, &heads});
  check.shape("indices", a.indices, {&queries, &top_k});
  check.shape("counts", a.counts, {&queries});
  if (!check.ok()) return check.status();
  return run_select(
      a, a.k, packed_rows(a.k), page_map(a.sequences),
      [&](Chunk* chunks) { return resolve_chunks(Select::name, a.sequences, queries, keys, chunks); }, runtime);
}

Status run(const SelectPaged& a, Runtime& runtime) {
  Check check(SelectPaged::name);
  Dim queries("queries"), heads("index_heads"), width("width"), pages("pages"), block_size("block_size"), top_k("top_k");
  check.shape("q", a.q, {&queries, &heads, &width});
  check.shape("k_pages", a.k_pages, {&pages, &block_size, &width});
  check.shape("weights", a.weights, {&queries, &heads});
  check.shape("indices", a.indices, {&queries, &top_k});
  check.shape("counts", a.counts, {&queries});
  if (!check.ok()) return check.status();
  return run_select(
      a, a.k_pages, paged_rows(a.k_pages), page_map(a.sequences, block_size),
      [&](Chunk* chunks) { return resolve_chunks(SelectPaged::name, a.sequences, queries, pages, block_size, chunks); }, runtime);
}

Status run(const Scores& a, Runtime& runtime) {
  Check check(Scores::name);
  Dim queries("queries"), heads("index_heads"), width("width"), keys("keys"), top_k("top_k");
  check.shape("q", a.q, {&queries, &heads, &width});
  check.shape("k", a.k, {&keys, &width});
  check.shape("weights", a.weights, {&queries, &heads});
  check.shape("indices", a.chosen.indices, {&queries, &top_k});
  check.shape("scores", a.scores, {&queries, &top_k});
  if (!check.ok()) return check.status();
  ScoresParams params{};
  Chunk* chunks = nullptr;
  int64_t* first_task = nullptr;
  if (Status status = prepare_scores(a, a.scores, false, params, chunks, first_task, runtime); !status.ok()) return status;
  if (runtime.use_reference(a.q.dtype)) {
    with_floating(a.q.dtype, [&]<typename T>() { scores_reference<T>(a, chunks, params.chunk_count); });
    return {};
  }
  params.scores = a.scores.as<float>();
  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  const int64_t tasks = count_tasks(chunks, params.chunk_count, params.sizes.tokens_per_task, 1, first_task);
  return share(Scores::name, runtime, tasks, table.scores_scratch(params.sizes), params, table.scores);
}

Status run(const ScoresBackward& a, Runtime& runtime) {
  Check check(ScoresBackward::name);
  Dim queries("queries"), heads("index_heads"), width("width"), keys("keys"), top_k("top_k");
  check.shape("q", a.q, {&queries, &heads, &width});
  check.shape("k", a.k, {&keys, &width});
  check.shape("weights", a.weights, {&queries, &heads});
  check.shape("indices", a.chosen.indices, {&queries, &top_k});
  check.shape("d_scores", a.d_scores, {&queries, &top_k});
  check.shape("d_q", a.d_q, {&queries, &heads, &width});
  check.shape("d_k", a.d_k, {&keys, &width});
  check.shape("d_weights", a.d_weights, {&queries, &heads});
  if (!check.ok()) return check.status();
  ScoresParams params{};
  Chunk* chunks = nullptr;
  int64_t* first_task = nullptr;
  if (Status status = prepare_scores(a, a.d_scores, true, params, chunks, first_task, runtime); !status.ok()) return status;
  if (runtime.use_reference(a.q.dtype)) {
    with_floating(a.q.dtype, [&]<typename T>() { scores_backward_reference<T>(a, chunks, params.chunk_count); });
    return {};
  }
  params.d_scores = a.d_scores.as<float>();
  params.d_q = heads_of(a.d_q);
  params.d_k = a.d_k.as<float>();
  params.d_k_stride = a.d_k.stride[0];
  params.d_weights = a.d_weights.as<float>();
  params.d_weight_stride = a.d_weights.stride[0];
  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  const Sizes& sizes = params.sizes;
  const int64_t query_tasks = count_tasks(chunks, params.chunk_count, sizes.tokens_per_task, 1, first_task);
  const int64_t key_tasks = count_key_tasks(params.key_tasks, chunks, params.chunk_count, sizes.keys_per_task, 1);
  const int64_t scratch_bytes = table.scores_scratch(sizes);
  Status status = share(ScoresBackward::name, runtime, query_tasks, scratch_bytes, params, table.backward_queries);
  if (!status.ok()) return status;
  return share(ScoresBackward::name, runtime, key_tasks, scratch_bytes, params, table.backward_keys);
}

}  // namespace trilithon::dsa_indexer

namespace trilithon {

void register_dsa_indexer(OpRegistry& registry) {
  add_entry<dsa_indexer::Select>(registry);
  add_entry<dsa_indexer::SelectPaged>(registry);
  add_entry<dsa_indexer::Scores>(registry);
  add_entry<dsa_indexer::ScoresBackward>(registry);
}

}  // namespace trilithon
