#include "ops/lm-head/lm-head.h"

#include "ops/lm-head/check-weight.h"
#include "pool/runtime.h"
#include "pool/scratch-arrays.h"

TRILITHON_DEFINE_KERNELS(lm_head)

namespace trilithon::lm_head {
namespace {

// Rows that one thread multiplies with a chunk at a time: enough to pay for packing the chunk, few enough that their logits
// stay in its cache.
constexpr int64_t part_rows = 4 * block_rows;

// Rows between two visits of the whole vocabulary: bounds the scratch for sums of chunks.
constexpr int64_t group_rows = 4 * part_rows;

// Chunks whose gradients of logits are held at a time.
constexpr int64_t tile_chunks = 4;

void check_rows(Check& check, Dim& tokens, int64_t vocabulary, const TensorView& targets, const TensorView& temperature) {
  check.shape("targets", targets, {&tokens});
  check.shape("temperature", temperature, {&tokens});
  if (!check.ok()) return;
  for (int64_t t = 0; t < tokens && check.ok(); ++t) {
    const int32_t target = targets.at<int32_t>(t);
    if (target < 0 || target >= vocabulary)
      check.that(false, "targets", "tokens from 0 to " + std::to_string(vocabulary - 1),
                 std::to_string(target) + " at " + std::to_string(t));
    double value = 0;
    with_floating(temperature.dtype, [&]<typename T>() { value = static_cast<double>(temperature.at<T>(t)); });
    // A reciprocal below this would leave the range of float.
    if (!(value >= 1e-6 && value <= 1e6))
      check.that(false, "temperature", "numbers from 1e-6 to 1e6", number_text(value) + " at " + std::to_string(t));
  }
}

// Calls body(row_begin, row_end, chunk, thread) for all parts of the rows and all chunks; parts of one chunk follow each other,
// so that its weight is read from memory once.
template <typename Body>
Status over_parts(const char* name, int64_t rows, int64_t chunk_begin, int64_t chunk_end, Runtime& runtime, Body body) {
  const int64_t parts = divide_up(rows, part_rows);
  return runtime.parallel(name, parts * (chunk_end - chunk_begin), 1, [&](int64_t index, int64_t, int thread) {
    const int64_t part = index % parts;
    body(part * rows / parts, (part + 1) * rows / parts, chunk_begin + index / parts, thread);
  });
}

Status multiply(const Product& product, int64_t m, int64_t n, const Kernels& table, Runtime& runtime) {
  const ProductCut cut(m, n, product.k, product.b_form, runtime.threads());
  return runtime.parallel(Backward::name, cut.parts(), 1, [&](int64_t part, int64_t, int thread) {
    table.product(product, cut.block(part), static_cast<float*>(runtime.scratch(thread, product_scratch_bytes)));
  });
}

}  // namespace

Status run(const Forward& a, Runtime& runtime) {
  Check check(Forward::name);
  Dim tokens("tokens"), width("width"), vocabulary("vocabulary"), two("2", 2);
  check.shape("hidden", a.hidden, {&tokens, &width});
  check_weight(check, a.weight, a.packed, a.vocabulary, width, vocabulary);
  if (check.ok()) check_rows(check, tokens, vocabulary, a.targets, a.temperature);
  check.shape("logprob", a.logprob, {&tokens});
  check.shape("entropy", a.entropy, {&tokens});
  check.shape("stats", a.stats, {&tokens, &two});
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.hidden.dtype)) {
    with_floating(a.hidden.dtype, [&]<typename T>() { forward_reference<T>(a); });
    return {};
  }
  const int64_t chunks = divide_up(vocabulary, vocabulary_chunk);
  const int64_t most_rows = std::min<int64_t>(tokens, group_rows);
  float *partials = nullptr, *target_logits = nullptr;
  ScratchArrays arrays;
  arrays.add(partials, most_rows * 3 * chunks);
  arrays.add(target_logits, most_rows);
  if (Status status = arrays.reserve(Forward::name, runtime); !status.ok()) return status;
  const size_t thread_bytes =
      product_scratch_bytes + sizeof(float) * static_cast<size_t>(std::min(most_rows, part_rows) * vocabulary_chunk);
  if (Status status = reserve_thread_scratch(Forward::name, runtime, thread_bytes); !status.ok()) return status;

  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  const bool packed = a.packed.present();
  for (int64_t row = 0; row < tokens; row += group_rows) {
    const int64_t rows = std::min<int64_t>(group_rows, tokens - row);
    ForwardParams params{};
    params.logits = {a.hidden.row<float>(row),
                     packed ? a.packed.as<float>() : a.weight.as<float>(),
                     a.hidden.stride[0],
                     packed ? 0 : a.weight.stride[0],
                     width,
                     vocabulary,
                     packed};
    params.targets = a.targets.as<int32_t>() + row;
    params.temperature = a.temperature.as<float>() + row;
    params.partials = partials;
    params.target_logits = target_logits;
    params.chunks = chunks;
    params.logprob = a.logprob.as<float>() + row;
    params.entropy = a.entropy.present() ? a.entropy.as<float>() + row : nullptr;
    params.stats = a.stats.present() ? a.stats.as<float>() + 2 * row : nullptr;
    Status status = over_parts(Forward::name, rows, 0, chunks, runtime, [&](int64_t begin, int64_t end, int64_t chunk, int thread) {
      table.sums(params, begin, end, chunk, static_cast<float*>(runtime.scratch(thread, thread_bytes)));
    });
    if (!status.ok()) return status;
    status = runtime.parallel(Forward::name, rows, Runtime::grain(chunks * 100),
                              [&](int64_t begin, int64_t end, int) { table.finish(params, begin, end); });
    if (!status.ok()) return status;
  }
  return {};
}

Status run(const Backward& a, Runtime& runtime) {
  Check check(Backward::name);
  Dim tokens("tokens"), width("width"), vocabulary("vocabulary"), two("2", 2);
  check.shape("hidden", a.hidden, {&tokens, &width});
  check.shape("weight", a.weight, {&vocabulary, &width});
  if (check.ok()) check_rows(check, tokens, vocabulary, a.targets, a.temperature);
  check.shape("d_logprob", a.d_logprob, {&tokens});
  check.shape("stats", a.stats, {&tokens, &two});
  check.shape("d_hidden", a.d_hidden, {&tokens, &width});
  check.shape("d_weight", a.d_weight, {&vocabulary, &width});
  check.that(a.d_hidden.present() || a.d_weight.present(), "d_hidden", "d_hidden or d_weight", "neither");
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.hidden.dtype)) {
    with_floating(a.hidden.dtype, [&]<typename T>() { backward_reference<T>(a); });
    return {};
  }
  const int64_t chunks = divide_up(vocabulary, vocabulary_chunk), tile_width = tile_chunks * vocabulary_chunk;
  float* d_logits = nullptr;
  ScratchArrays arrays;
  arrays.add(d_logits, std::min<int64_t>(tokens, group_rows) * tile_width);
  if (Status status = arrays.reserve(Backward::name, runtime); !status.ok()) return status;
  if (Status status = reserve_thread_scratch(Backward::name, runtime, product_scratch_bytes); !status.ok()) return status;

  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  // Tiles outside and groups inside: d_hidden then sums over the vocabulary, and d_weight over the rows, in ascending order.
  for (int64_t chunk = 0; chunk < chunks; chunk += tile_chunks) {
    const int64_t first_token = chunk * vocabulary_chunk, count = std::min<int64_t>(tile_width, vocabulary - first_token);
    for (int64_t row = 0; row < tokens; row += group_rows) {
      const int64_t rows = std::min<int64_t>(group_rows, tokens - row);
      BackwardParams params{};
      params.logits = {a.hidden.row<float>(row), a.weight.as<float>(), a.hidden.stride[0], a.weight.stride[0], width, vocabulary, false};
      params.targets = a.targets.as<int32_t>() + row;
      params.temperature = a.temperature.as<float>() + row;
      params.stats = a.stats.as<float>() + 2 * row;
      params.d_logprob = a.d_logprob.as<float>() + row;
      params.d_logits = d_logits;
      params.d_logits_stride = tile_width;
      params.first_chunk = chunk;
      Status status = over_parts(Backward::name, rows, chunk, std::min(chunks, chunk + tile_chunks), runtime,
                                 [&](int64_t begin, int64_t end, int64_t index, int thread) {
                                   float* scratch = static_cast<float*>(runtime.scratch(thread, product_scratch_bytes));
                                   table.d_logits(params, begin, end, index, scratch);
                                 });
      if (status.ok() && a.d_hidden.present()) {
        const Product product{d_logits,
                              a.weight.row<float>(first_token),
                              a.d_hidden.row<float>(row),
                              nullptr,
                              tile_width,
                              a.weight.stride[0],
                              a.d_hidden.stride[0],
                              count,
                              AForm::rows,
                              BForm::rows,
                              chunk > 0};
        status = multiply(product, rows, width, table, runtime);
      }
      if (status.ok() && a.d_weight.present()) {
        const Product product{d_logits,
                              a.hidden.row<float>(row),
                              a.d_weight.row<float>(first_token),
                              nullptr,
                              tile_width,
                              a.hidden.stride[0],
                              a.d_weight.stride[0],
                              rows,
                              AForm::columns,
                              BForm::rows,
                              a.accumulate || row > 0};
        status = multiply(product, count, width, table, runtime);
      }
      if (!status.ok()) return status;
    }
  }
  return {};
}

}  // namespace trilithon::lm_head

namespace trilithon {

void register_lm_head(OpRegistry& registry) {
  add_entry<lm_head::Forward>(registry);
  add_entry<lm_head::Backward>(registry);
}

}  // namespace trilithon
