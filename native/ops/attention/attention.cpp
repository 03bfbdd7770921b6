#include "ops/attention/attention.h"

#include <string>

#include "include/check.h"
#include "pool/scratch-arrays.h"

TRILITHON_DEFINE_KERNELS(attention)

namespace trilithon::attention {
namespace {

PagedHeads packed_heads(const TensorView& view) { return {view.as<float>(), view.stride[0], view.stride[1], 0}; }
PagedHeads paged_heads(const TensorView& view) { return {view.as<float>(), view.stride[1], view.stride[2], view.stride[0]}; }

void check_groups(Check& check, const char* argument, int64_t heads, int64_t kv_heads) {
  check.that(heads % std::max<int64_t>(1, kv_heads) == 0, argument, "kv_heads that divide the " + std::to_string(heads) + " heads of q",
             std::to_string(kv_heads));
}

Sizes sizes_of(const TensorView& q, int64_t kv_heads, int64_t value_width, double scale) {
  return {q.shape[1], kv_heads, q.shape[2], value_width, 1, static_cast<float>(scale)};
}

// Forward over packed or paged keys. resolve(chunks) writes the chunks of the call.
template <typename Resolve>
Status run_forward(const char* op, const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& out,
                   const TensorView& lse, const PageMap& pages, double scale, int64_t chunk_count, Resolve resolve, Runtime& runtime) {
  Chunk* chunks = nullptr;
  int64_t* first_task = nullptr;
  const auto reserve = [&](char*& partials, int64_t partial_bytes) -> Status {
    ScratchArrays arrays;
    arrays.add(chunks, chunk_count);
    arrays.add(first_task, chunk_count + 1);
    arrays.add(partials, partial_bytes);
    if (Status status = arrays.reserve(op, runtime); !status.ok()) return status;
    return resolve(chunks);
  };
  char* partials = nullptr;
  if (Status status = reserve(partials, 0); !status.ok()) return status;
  if (runtime.use_reference(q.dtype)) {
    with_floating(q.dtype, [&]<typename T>() { forward_reference<T>(q, k, v, pages, chunks, chunk_count, scale, out, lse); });
    return {};
  }

  const bool paged = pages.block_table != nullptr;
  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  ForwardParams params{};
  params.sizes = sizes_of(q, k.shape[paged ? 2 : 1], out.shape[2], scale);
  params.q = heads_of(q);
  params.out = heads_of(out);
  params.k = paged ? paged_heads(k) : packed_heads(k);
  params.v = paged ? paged_heads(v) : packed_heads(v);
  params.pages = pages;
  params.lse = lse.as<float>();
  params.chunk_count = chunk_count;
  const Extent extent = extent_of(chunks, chunk_count);
  Sizes& sizes = params.sizes;
  sizes.tokens_per_task = std::max<int64_t>(1, std::min(table.tokens_per_task(sizes), extent.queries));
  const int64_t tasks = count_tasks(chunks, chunk_count, sizes.tokens_per_task, sizes.kv_heads, first_task);
  params.segments = (extent.keys + table.segment_keys() - 1) / table.segment_keys();
  // Few tasks with many keys (decoding): their segments are shared out among threads, and combined in order.
  const bool split = runtime.threads() > 1 && tasks < 4 * runtime.threads() && params.segments > 1;
  if (split) {
    params.partial_bytes = table.partial_bytes(sizes);
    if (Status status = reserve(params.partials, tasks * params.segments * params.partial_bytes); !status.ok()) return status;
    count_tasks(chunks, chunk_count, sizes.tokens_per_task, sizes.kv_heads, first_task);
  }
  params.chunks = chunks;
  params.first_task = first_task;
  const size_t scratch_bytes = static_cast<size_t>(table.forward_scratch(sizes));
  if (Status status = reserve_thread_scratch(op, runtime, scratch_bytes); !status.ok()) return status;
  const auto share = [&](int64_t count, auto kernel) {
    return runtime.parallel(
        op, count, 1, [&](int64_t begin, int64_t end, int thread) { kernel(params, begin, end, runtime.scratch(thread, scratch_bytes)); });
  };
  if (!split) return share(tasks, table.forward);
  if (Status status = share(tasks * params.segments, table.forward_segment); !status.ok()) return status;
  return share(tasks, table.forward_combine);
}

}  // namespace

Status run(const Forward& a, Runtime& runtime) {
  Check check(Forward::name);
  Dim queries("queries"), heads("heads"), width("width"), keys("keys"), kv_heads("kv_heads"), value_width("value_width");
  check.shape("q", a.q, {&queries, &heads, &width});
  check.shape("k", a.k, {&keys, &kv_heads, &width});
  check.shape("v", a.v, {&keys, &kv_heads, &value_width});
  check.shape("out", a.out, {&queries, &heads, &value_width});
  check.shape("lse", a.lse, {&queries, &heads});
  if (check.ok()) check_groups(check, "k", heads, kv_heads);
  if (!check.ok()) return check.status();
  return run_forward(
      Forward::name, a.q, a.k, a.v, a.out, a.lse, page_map(a.sequences), a.scale, chunk_count(a.sequences),
      [&](Chunk* chunks) { return resolve_chunks(Forward::name, a.sequences, queries, keys, chunks); }, runtime);
}

Status run(const Paged& a, Runtime& runtime) {
  Check check(Paged::name);
  Dim queries("queries"), heads("heads"), width("width"), pages("pages"), block_size("block_size"), kv_heads("kv_heads"),
      value_width("value_width");
  check.shape("q", a.q, {&queries, &heads, &width});
  check.shape("k_pages", a.k_pages, {&pages, &block_size, &kv_heads, &width});
  check.shape("v_pages", a.v_pages, {&pages, &block_size, &kv_heads, &value_width});
  check.shape("out", a.out, {&queries, &heads, &value_width});
  check.shape("lse", a.lse, {&queries, &heads});
  if (check.ok()) check_groups(check, "k_pages", heads, kv_heads);
  if (!check.ok()) return check.status();
  return run_forward(
      Paged::name, a.q, a.k_pages, a.v_pages, a.out, a.lse, page_map(a.sequences, block_size), a.scale, chunk_count(a.sequences),
      [&](Chunk* chunks) { return resolve_chunks(Paged::name, a.sequences, queries, pages, block_size, chunks); }, runtime);
}

Status run(const Backward& a, Runtime& runtime) {
  Check check(Backward::name);
  Dim queries("queries"), heads("heads"), width("width"), keys("keys"), kv_heads("kv_heads"), value_width("value_width");
  check.shape("q", a.q, {&queries, &heads, &width});
  check.shape("k", a.k, {&keys, &kv_heads, &width});
  check.shape("v", a.v, {&keys, &kv_heads, &value_width});
  check.shape("out", a.out, {&queries, &heads, &value_width});
  check.shape("d_out", a.d_out, {&queries, &heads, &value_width});
  check.shape("lse", a.lse, {&queries, &heads});
  check.shape("d_q", a.d_q, {&queries, &heads, &width});
  check.shape("d_k", a.d_k, {&keys, &kv_heads, &width});
  check.shape("d_v", a.d_v, {&keys, &kv_heads, &value_width});
  if (check.ok()) check_groups(check, "k", heads, kv_heads);
  if (!check.ok()) return check.status();

  const bool reference = runtime.use_reference(a.q.dtype);
  const int64_t count = chunk_count(a.sequences);
  Chunk* chunks = nullptr;
  int64_t* first_task = nullptr;
  BackwardParams params{};
  KeyTasks& key_tasks = params.key_tasks;
  key_tasks = {a.sequences.document_starts.as<int32_t>(), nullptr, nullptr, document_count(a.sequences)};
  ScratchArrays arrays;
  arrays.add(chunks, count);
  arrays.add(first_task, count + 1);
  arrays.add(key_tasks.first_task, key_tasks.documents + 1);
  arrays.add(key_tasks.document_chunks, key_tasks.documents + 1);
  arrays.add(params.delta, reference ? 0 : queries * heads);
  if (Status status = arrays.reserve(Backward::name, runtime); !status.ok()) return status;
  if (Status status = resolve_chunks(Backward::name, a.sequences, queries, keys, chunks); !status.ok()) return status;
  if (reference) {
    with_floating(a.q.dtype, [&]<typename T>() { backward_reference<T>(a, chunks, count); });
    return {};
  }

  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  params.sizes = sizes_of(a.q, kv_heads, value_width, a.scale);
  params.sizes.tokens_per_task = table.tokens_per_task(params.sizes);
  params.d_out = heads_of(a.d_out);
  params.q = heads_of(a.q);
  params.out = heads_of(a.out);
  params.d_q = heads_of(a.d_q);
  params.d_k = heads_of(a.d_k);
  params.d_v = heads_of(a.d_v);
  params.k = packed_heads(a.k);
  params.v = packed_heads(a.v);
  params.lse = a.lse.as<float>();
  params.chunks = chunks;
  params.first_task = first_task;
  params.chunk_count = count;
  const int64_t query_tasks = count_tasks(chunks, count, params.sizes.tokens_per_task, kv_heads, first_task);
  const int64_t key_task_count = count_key_tasks(key_tasks, chunks, count, table.keys_per_task(), kv_heads);

  const size_t scratch_bytes = static_cast<size_t>(table.backward_scratch(params.sizes));
  if (Status status = reserve_thread_scratch(Backward::name, runtime, scratch_bytes); !status.ok()) return status;
  Status status = runtime.parallel(Backward::name, queries, Runtime::grain(heads * value_width * 8),
                                   [&](int64_t begin, int64_t end, int) { table.delta(params, begin, end); });
  if (!status.ok()) return status;
  status = runtime.parallel(Backward::name, query_tasks, 1, [&](int64_t begin, int64_t end, int thread) {
    table.backward_queries(params, begin, end, runtime.scratch(thread, scratch_bytes));
  });
  if (!status.ok()) return status;
  return runtime.parallel(Backward::name, key_task_count, 1, [&](int64_t begin, int64_t end, int thread) {
    table.backward_keys(params, begin, end, runtime.scratch(thread, scratch_bytes));
  });
}

}  // namespace trilithon::attention

namespace trilithon {

void register_attention(OpRegistry& registry) {
  add_entry<attention::Forward>(registry);
  add_entry<attention::Backward>(registry);
  add_entry<attention::Paged>(registry);
}

}  // namespace trilithon
