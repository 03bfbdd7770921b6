#include "ops/indexer-kl/indexer-kl.h"

#include "include/check.h"
#include "pool/chosen-keys.h"
#include "pool/scratch-arrays.h"

TRILITHON_DEFINE_KERNELS(indexer_kl)

namespace trilithon::indexer_kl {
namespace {

struct Dims {
  Dim queries{"queries"}, keys{"keys"}, index_heads{"index_heads"}, index_width{"index_width"}, heads{"heads"},
      latent_width{"latent_width"}, rope_width{"rope_width"};
};

void check_inputs(Check& check, const Inputs& in, Dims& dims) {
  check.shape("index_q", in.index_q, {&dims.queries, &dims.index_heads, &dims.index_width});
  check.shape("index_k", in.index_k, {&dims.keys, &dims.index_width});
  check.shape("index_weights", in.index_weights, {&dims.queries, &dims.index_heads});
  check.shape("q", in.q, {&dims.queries, &dims.heads, &dims.latent_width});
  check.shape("q_rope", in.q_rope, {&dims.queries, &dims.heads, &dims.rope_width});
  check.shape("latent", in.latent, {&dims.keys, &dims.latent_width});
  check.shape("rope", in.rope, {&dims.keys, &dims.rope_width});
  check.shape("lse", in.lse, {&dims.queries, &dims.heads});
}

struct Plan {
  Params params{};
  Chunk* chunks = nullptr;
  int64_t* first_task = nullptr;
  int64_t query_tasks = 0;
};

// Resolves chunks, checks the lists and, unless the reference runs, fills what both kernels need.
Status prepare(const char* op, const Inputs& in, int64_t documents, Plan& plan, Runtime& runtime) {
  Params& params = plan.params;
  const int64_t count = chunk_count(in.sequences);
  params.chunk_count = count;
  params.key_tasks = {in.sequences.document_starts.as<int32_t>(), nullptr, nullptr, documents};
  ScratchArrays arrays;
  arrays.add(plan.chunks, count);
  arrays.add(plan.first_task, count + 1);
  arrays.add(params.key_tasks.first_task, documents + 1);
  arrays.add(params.key_tasks.document_chunks, documents + 1);
  if (Status status = arrays.reserve(op, runtime); !status.ok()) return status;
  if (Status status = resolve_chunks(op, in.sequences, in.q.shape[0], in.latent.shape[0], plan.chunks); !status.ok()) return status;
  if (Status status = check_chosen(op, in.chosen, plan.chunks, count, in.q.shape[0], runtime); !status.ok()) return status;
  if (runtime.use_reference(in.q.dtype)) return {};

  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  params.sizes = {in.index_q.shape[1],
                  in.index_q.shape[2],
                  in.q.shape[1],
                  in.q.shape[2],
                  in.q_rope.shape[2],
                  1,
                  0,
                  static_cast<float>(in.index_scale),
                  static_cast<float>(in.scale)};
  params.sizes.tokens_per_task = table.tokens_per_task(params.sizes);
  params.sizes.keys_per_task = table.keys_per_task(in.chosen.present() && in.chosen.indices.shape[1] < extent_of(plan.chunks, count).keys);
  params.index_q = heads_of(in.index_q);
  params.q = heads_of(in.q);
  params.q_rope = heads_of(in.q_rope);
  params.index_weights = in.index_weights.as<float>();
  params.index_weight_stride = in.index_weights.stride[0];
  params.index_k = packed_rows(in.index_k);
  params.latent = packed_rows(in.latent);
  params.rope = packed_rows(in.rope);
  params.lse = in.lse.as<float>();
  params.chosen = chosen_rows(in.chosen);
  params.chunks = plan.chunks;
  params.first_task = plan.first_task;
  plan.query_tasks = count_tasks(plan.chunks, count, params.sizes.tokens_per_task, 1, plan.first_task);
  return {};
}

Status share(const char* op, Runtime& runtime, const Params& params, int64_t tasks,
             void (*kernel)(const Params&, int64_t, int64_t, void*)) {
  const size_t bytes = static_cast<size_t>(kernels(runtime.profile(), runtime.isa()).scratch(params.sizes));
  if (Status status = reserve_thread_scratch(op, runtime, bytes); !status.ok()) return status;
  return runtime.parallel(op, tasks, 1,
                          [&](int64_t begin, int64_t end, int thread) { kernel(params, begin, end, runtime.scratch(thread, bytes)); });
}

}  // namespace

Status run(const Forward& a, Runtime& runtime) {
  Check check(Forward::name);
  Dims dims;
  check_inputs(check, a.in, dims);
  check.shape("kl", a.kl, {&dims.queries});
  check.shape("index_lse", a.index_lse, {&dims.queries});
  check.shape("target_sum", a.target_sum, {&dims.queries});
  if (!check.ok()) return check.status();
  Plan plan;
  if (Status status = prepare(Forward::name, a.in, 0, plan, runtime); !status.ok()) return status;
  if (runtime.use_reference(a.in.q.dtype)) {
    with_floating(a.in.q.dtype, [&]<typename T>() { forward_reference<T>(a, plan.chunks, plan.params.chunk_count); });
    return {};
  }
  plan.params.kl = a.kl.as<float>();
  plan.params.index_lse = a.index_lse.as<float>();
  plan.params.target_sum = a.target_sum.as<float>();
  return share(Forward::name, runtime, plan.params, plan.query_tasks, kernels(runtime.profile(), runtime.isa()).forward);
}

Status run(const Backward& a, Runtime& runtime) {
  Check check(Backward::name);
  Dims dims;
  check_inputs(check, a.in, dims);
  check.shape("d_kl", a.d_kl, {&dims.queries});
  check.shape("index_lse", a.index_lse, {&dims.queries});
  check.shape("target_sum", a.target_sum, {&dims.queries});
  check.shape("d_index_q", a.d_index_q, {&dims.queries, &dims.index_heads, &dims.index_width});
  check.shape("d_index_k", a.d_index_k, {&dims.keys, &dims.index_width});
  check.shape("d_index_weights", a.d_index_weights, {&dims.queries, &dims.index_heads});
  if (!check.ok()) return check.status();
  Plan plan;
  if (Status status = prepare(Backward::name, a.in, document_count(a.in.sequences), plan, runtime); !status.ok()) return status;
  if (runtime.use_reference(a.in.q.dtype)) {
    with_floating(a.in.q.dtype, [&]<typename T>() { backward_reference<T>(a, plan.chunks, plan.params.chunk_count); });
    return {};
  }
  Params& params = plan.params;
  params.d_kl = a.d_kl.as<float>();
  params.index_lse = a.index_lse.as<float>();
  params.target_sum = a.target_sum.as<float>();
  params.d_index_q = heads_of(a.d_index_q);
  params.d_index_k = a.d_index_k.as<float>();
  params.d_index_k_stride = a.d_index_k.stride[0];
  params.d_index_weights = a.d_index_weights.as<float>();
  params.d_index_weight_stride = a.d_index_weights.stride[0];
  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  const int64_t key_tasks = count_key_tasks(params.key_tasks, plan.chunks, params.chunk_count, params.sizes.keys_per_task, 1);
  Status status = share(Backward::name, runtime, params, plan.query_tasks, table.backward_queries);
  if (!status.ok()) return status;
  return share(Backward::name, runtime, params, key_tasks, table.backward_keys);
}

}  // namespace trilithon::indexer_kl

namespace trilithon {

void register_indexer_kl(OpRegistry& registry) {
  add_entry<indexer_kl::Forward>(registry);
  add_entry<indexer_kl::Backward>(registry);
}

}  // namespace trilithon
