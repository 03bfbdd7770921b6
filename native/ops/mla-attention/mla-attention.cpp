#include "ops/mla-attention/mla-attention.h"

#include "include/check.h"
#include "pool/chosen-keys.h"
#include "pool/scratch-arrays.h"

TRILITHON_DEFINE_KERNELS(mla_attention)

namespace trilithon::mla_attention {
namespace {

Sizes sizes_of(const TensorView& q, const TensorView& q_rope, double scale) {
  return {q.shape[1], q.shape[2], q_rope.shape[2], 1, 0, static_cast<float>(scale)};
}

// Forward over packed or paged keys. `params` has the key rows and pages; resolve(chunks) writes the chunks of the call.
template <typename Args, typename Resolve>
Status run_forward(const Args& a, const TensorView& latent, const TensorView& rope, ForwardParams& params, int64_t chunk_count,
                   Resolve resolve, Runtime& runtime) {
  Chunk* chunks = nullptr;
  int64_t* first_task = nullptr;
  const auto reserve = [&](int64_t partial_bytes) -> Status {
    ScratchArrays arrays;
    arrays.add(chunks, chunk_count);
    arrays.add(first_task, chunk_count + 1);
    arrays.add(params.partials, partial_bytes);
    if (Status status = arrays.reserve(Args::name, runtime); !status.ok()) return status;
    return resolve(chunks);
  };
  if (Status status = reserve(0); !status.ok()) return status;
  if (Status status = check_chosen(Args::name, a.chosen, chunks, chunk_count, a.q.shape[0], runtime); !status.ok()) return status;
  if (runtime.use_reference(a.q.dtype)) {
    with_floating(a.q.dtype, [&]<typename T>() {
      forward_reference<T>(a.q, a.q_rope, latent, rope, params.pages, a.chosen, chunks, chunk_count, a.scale, a.out, a.lse);
    });
    return {};
  }

  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  Sizes& sizes = params.sizes;
  sizes = sizes_of(a.q, a.q_rope, a.scale);
  params.q = heads_of(a.q);
  params.q_rope = heads_of(a.q_rope);
  params.out = heads_of(a.out);
  params.chosen = chosen_rows(a.chosen);
  params.lse = a.lse.template as<float>();
  params.chunk_count = chunk_count;
  const Extent extent = extent_of(chunks, chunk_count);
  sizes.tokens_per_task = std::max<int64_t>(1, std::min(table.tokens_per_task(sizes), extent.queries));
  const int64_t tasks = count_tasks(chunks, chunk_count, sizes.tokens_per_task, 1, first_task);
  const int64_t most_keys = a.chosen.present() ? std::min(extent.keys, a.chosen.indices.shape[1]) : extent.keys;
  params.segments = (most_keys + table.segment_keys() - 1) / table.segment_keys();
  // Few tasks with many keys (decoding): their segments are shared out among threads, and combined in order.
  const bool split = runtime.threads() > 1 && tasks < 4 * runtime.threads() && params.segments > 1 && sizes.tokens_per_task == 1;
  if (split) {
    params.partial_bytes = table.partial_bytes(sizes);
    if (Status status = reserve(tasks * params.segments * params.partial_bytes); !status.ok()) return status;
    count_tasks(chunks, chunk_count, sizes.tokens_per_task, 1, first_task);
  }
  params.chunks = chunks;
  params.first_task = first_task;
  const size_t scratch_bytes = static_cast<size_t>(table.forward_scratch(sizes));
  if (Status status = reserve_thread_scratch(Args::name, runtime, scratch_bytes); !status.ok()) return status;
  const auto share = [&](int64_t count, auto kernel) {
    return runtime.parallel(Args::name, count, 1, [&](int64_t begin, int64_t end, int thread) {
      kernel(params, begin, end, runtime.scratch(thread, scratch_bytes));
    });
  };
  if (!split) return share(tasks, table.forward);
  if (Status status = share(tasks * params.segments, table.forward_segment); !status.ok()) return status;
  return share(tasks, table.forward_combine);
}

}  // namespace

Status run(const Forward& a, Runtime& runtime) {
  Check check(Forward::name);
  Dim queries("queries"), heads("heads"), latent_width("latent_width"), rope_width("rope_width"), keys("keys");
  check.shape("q", a.q, {&queries, &heads, &latent_width});
  check.shape("q_rope", a.q_rope, {&queries, &heads, &rope_width});
  check.shape("latent", a.latent, {&keys, &latent_width});
  check.shape("rope", a.rope, {&keys, &rope_width});
  check.shape("out", a.out, {&queries, &heads, &latent_width});
  check.shape("lse", a.lse, {&queries, &heads});
  if (!check.ok()) return check.status();
  ForwardParams params{};
  params.latent = packed_rows(a.latent);
  params.rope = packed_rows(a.rope);
  params.pages = page_map(a.sequences);
  return run_forward(
      a, a.latent, a.rope, params, chunk_count(a.sequences),
      [&](Chunk* chunks) { return resolve_chunks(Forward::name, a.sequences, queries, keys, chunks); }, runtime);
}

Status run(const Paged& a, Runtime& runtime) {
  Check check(Paged::name);
  Dim queries("queries"), heads("heads"), latent_width("latent_width"), rope_width("rope_width"), pages("pages"), block_size("block_size");
  check.shape("q", a.q, {&queries, &heads, &latent_width});
  check.shape("q_rope", a.q_rope, {&queries, &heads, &rope_width});
  check.shape("latent_pages", a.latent_pages, {&pages, &block_size, &latent_width});
  check.shape("rope_pages", a.rope_pages, {&pages, &block_size, &rope_width});
  check.shape("out", a.out, {&queries, &heads, &latent_width});
  check.shape("lse", a.lse, {&queries, &heads});
  if (!check.ok()) return check.status();
  ForwardParams params{};
  params.latent = paged_rows(a.latent_pages);
  params.rope = paged_rows(a.rope_pages);
  params.pages = page_map(a.sequences, block_size);
  return run_forward(
      a, a.latent_pages, a.rope_pages, params, chunk_count(a.sequences),
      [&](Chunk* chunks) { return resolve_chunks(Paged::name, a.sequences, queries, pages, block_size, chunks); }, runtime);
}

Status run(const Backward& a, Runtime& runtime) {
  Check check(Backward::name);
  Dim queries("queries"), heads("heads"), latent_width("latent_width"), rope_width("rope_width"), keys("keys");
  check.shape("q", a.q, {&queries, &heads, &latent_width});
  check.shape("q_rope", a.q_rope, {&queries, &heads, &rope_width});
  check.shape("latent", a.latent, {&keys, &latent_width});
  check.shape("rope", a.rope, {&keys, &rope_width});
  check.shape("out", a.out, {&queries, &heads, &latent_width});
  check.shape("d_out", a.d_out, {&queries, &heads, &latent_width});
  check.shape("lse", a.lse, {&queries, &heads});
  check.shape("d_q", a.d_q, {&queries, &heads, &latent_width});
  check.shape("d_q_rope", a.d_q_rope, {&queries, &heads, &rope_width});
  check.shape("d_latent", a.d_latent, {&keys, &latent_width});
  check.shape("d_rope", a.d_rope, {&keys, &rope_width});
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
  if (Status status = check_chosen(Backward::name, a.chosen, chunks, count, queries, runtime); !status.ok()) return status;
  if (reference) {
    with_floating(a.q.dtype, [&]<typename T>() { backward_reference<T>(a, chunks, count); });
    return {};
  }

  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  Sizes& sizes = params.sizes;
  sizes = sizes_of(a.q, a.q_rope, a.scale);
  sizes.tokens_per_task = table.tokens_per_task(sizes);
  sizes.keys_per_task = table.keys_per_task(a.chosen.present() && a.chosen.indices.shape[1] < extent_of(chunks, count).keys);
  params.d_out = heads_of(a.d_out);
  params.q = heads_of(a.q);
  params.q_rope = heads_of(a.q_rope);
  params.out = heads_of(a.out);
  params.d_q = heads_of(a.d_q);
  params.d_q_rope = heads_of(a.d_q_rope);
  params.latent = packed_rows(a.latent);
  params.rope = packed_rows(a.rope);
  params.d_latent = a.d_latent.as<float>();
  params.d_rope = a.d_rope.as<float>();
  params.d_latent_stride = a.d_latent.stride[0];
  params.d_rope_stride = a.d_rope.stride[0];
  params.chosen = chosen_rows(a.chosen);
  params.lse = a.lse.as<float>();
  params.chunks = chunks;
  params.first_task = first_task;
  params.chunk_count = count;
  const int64_t query_tasks = count_tasks(chunks, count, sizes.tokens_per_task, 1, first_task);
  const int64_t key_task_count = count_key_tasks(key_tasks, chunks, count, sizes.keys_per_task, 1);

  const size_t scratch_bytes = static_cast<size_t>(table.backward_scratch(sizes));
  if (Status status = reserve_thread_scratch(Backward::name, runtime, scratch_bytes); !status.ok()) return status;
  Status status = runtime.parallel(Backward::name, queries, Runtime::grain(heads * latent_width * 8),
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

}  // namespace trilithon::mla_attention

namespace trilithon {

void register_mla_attention(OpRegistry& registry) {
  add_entry<mla_attention::Forward>(registry);
  add_entry<mla_attention::Backward>(registry);
  add_entry<mla_attention::Paged>(registry);
}

}  // namespace trilithon
