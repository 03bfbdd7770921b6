#include "ops/sampling/sampling.h"

#include <atomic>
#include <cmath>

#include "include/check.h"
#include "ops/lm-head/check-weight.h"
#include "ops/sampling/choose.h"
#include "ops/sampling/philox.h"
#include "pool/runtime.h"
#include "pool/scratch-arrays.h"

TRILITHON_DEFINE_KERNELS(sampling)

namespace trilithon::sampling {
namespace {

// Hidden rows whose logits are held at a time: the weight is read once for so many.
constexpr int64_t rows_at_once = 16;

double number_at(const TensorView& view, int64_t i) {
  double value = 0;
  with_floating(view.dtype, [&]<typename T>() { value = static_cast<double>(view.at<T>(i)); });
  return value;
}

void check_rules(Check& check, Dim& rows, const Rules& rules) {
  check.shape("temperature", rules.temperature, {&rows});
  check.shape("top_k", rules.top_k, {&rows});
  check.shape("top_p", rules.top_p, {&rows});
  check.shape("min_p", rules.min_p, {&rows});
  check.shape("seeds", rules.seeds, {&rows});
  check.shape("positions", rules.positions, {&rows});
  if (!check.ok()) return;
  const auto refuse = [&](const char* argument, const char* expected, double value, int64_t row) {
    check.that(false, argument, expected, number_text(value) + " for row " + std::to_string(row));
  };
  for (int64_t row = 0; row < rows && check.ok(); ++row) {
    const double temperature = number_at(rules.temperature, row);
    if (!(temperature == 0 || (temperature >= 1e-6 && temperature <= 1e6))) refuse("temperature", "0, or 1e-6 to 1e6", temperature, row);
    const double top_p = rules.top_p.present() ? number_at(rules.top_p, row) : 1;
    if (!(top_p > 0 && top_p <= 1)) refuse("top_p", "a number above 0, at most 1", top_p, row);
    const double min_p = rules.min_p.present() ? number_at(rules.min_p, row) : 0;
    if (!(min_p >= 0 && min_p <= 1)) refuse("min_p", "a number from 0 to 1", min_p, row);
    const int32_t position = rules.positions.at<int32_t>(row);
    if (position < 0) refuse("positions", "positions from 0", position, row);
  }
}

Status refuse_row(const char* name, const char* argument, int64_t row) {
  return invalid_argument(name, argument, "logits that are numbers or -infinity, one of them finite",
                          "NaN, infinity or nothing finite in row " + std::to_string(row));
}

float scale_of(const RowRules& rules) { return rules.greedy() ? 1.0f : 1.0f / static_cast<float>(rules.temperature); }

struct ThreadMemory {
  ChoiceScratch choice;
  float* partials;
};

size_t thread_bytes(int64_t vocabulary, int64_t chunks) {
  return static_cast<size_t>(vocabulary) * (sizeof(float) + sizeof(Candidate) + sizeof(int32_t)) +
         static_cast<size_t>(4 * chunks) * sizeof(float);
}

ThreadMemory thread_memory(void* data, int64_t vocabulary, int64_t chunks) {
  // Candidates first: they need the larger alignment.
  Candidate* candidates = static_cast<Candidate*>(data);
  float* weights = reinterpret_cast<float*>(candidates + vocabulary);
  int32_t* kept = reinterpret_cast<int32_t*>(weights + vocabulary);
  float* tops = reinterpret_cast<float*>(kept + vocabulary);
  return {{weights, candidates, kept, tops}, tops + chunks};
}

// Chooses for one row whose chunks are summed; false when its logits cannot be chosen from.
bool finish_row(const TensorView& tokens, const TensorView& logprob, int64_t index, Row row, const RowRules& rules, const Kernels& table,
                const ChoiceScratch& scratch, const float* partials) {
  row.tops = partials;
  row.sums = table.combine(partials, row.chunks);
  if (!std::isfinite(row.sums.top) || !std::isfinite(row.sums.log_sum)) return false;
  const int64_t token = choose(row, rules, table, scratch);
  tokens.at<int32_t>(index) = static_cast<int32_t>(token);
  logprob.at<float>(index) = (row.logits[token] * row.scale - row.sums.top) - row.sums.log_sum;
  return true;
}

void keep_lowest(std::atomic<int64_t>& lowest, int64_t row) {
  int64_t before = lowest.load();
  while (row < before && !lowest.compare_exchange_weak(before, row)) {
  }
}

}  // namespace

RowRules rules_of(const Rules& rules, int64_t row, int64_t vocabulary) {
  RowRules result{};
  result.temperature = number_at(rules.temperature, row);
  result.top_p = rules.top_p.present() ? number_at(rules.top_p, row) : 1;
  result.min_p = rules.min_p.present() ? number_at(rules.min_p, row) : 0;
  const int64_t top_k = rules.top_k.present() ? rules.top_k.at<int32_t>(row) : 0;
  result.top_k = top_k <= 0 || top_k >= vocabulary ? 0 : top_k;
  result.uniform = uniform_of(rules.seeds.at<int64_t>(row), rules.positions.at<int32_t>(row));
  return result;
}

Status run(const FromLogits& a, Runtime& runtime) {
  Check check(FromLogits::name);
  Dim rows("rows"), vocabulary("vocabulary");
  check.shape("logits", a.logits, {&rows, &vocabulary});
  if (check.ok()) check_rules(check, rows, a.rules);
  check.shape("tokens", a.tokens, {&rows});
  check.shape("logprob", a.logprob, {&rows});
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.logits.dtype)) {
    int64_t refused = -1;
    with_floating(a.logits.dtype, [&]<typename T>() { refused = from_logits_reference<T>(a); });
    return refused < 0 ? Status() : refuse_row(FromLogits::name, "logits", refused);
  }
  const int64_t chunks = divide_up(vocabulary, lm_head::vocabulary_chunk);
  const size_t bytes = thread_bytes(vocabulary, chunks);
  if (Status status = reserve_thread_scratch(FromLogits::name, runtime, bytes); !status.ok()) return status;
  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  std::atomic<int64_t> refused{rows};
  Status status = runtime.parallel(FromLogits::name, rows, 1, [&](int64_t index, int64_t, int thread) {
    const ThreadMemory memory = thread_memory(runtime.scratch(thread, bytes), vocabulary, chunks);
    const RowRules rules = rules_of(a.rules, index, vocabulary);
    const Row row{a.logits.row<float>(index), vocabulary, scale_of(rules), nullptr, chunks, {}};
    table.logit_sums(row.logits, vocabulary, row.scale, memory.partials, chunks);
    if (!finish_row(a.tokens, a.logprob, index, row, rules, table, memory.choice, memory.partials)) keep_lowest(refused, index);
  });
  if (!status.ok()) return status;
  return refused == rows ? Status() : refuse_row(FromLogits::name, "logits", refused);
}

Status run(const FromHidden& a, Runtime& runtime) {
  Check check(FromHidden::name);
  Dim rows("rows"), width("width"), vocabulary("vocabulary");
  check.shape("hidden", a.hidden, {&rows, &width});
  lm_head::check_weight(check, a.weight, a.packed, a.vocabulary, width, vocabulary);
  if (check.ok()) check_rules(check, rows, a.rules);
  check.shape("tokens", a.tokens, {&rows});
  check.shape("logprob", a.logprob, {&rows});
  if (!check.ok()) return check.status();

  if (runtime.use_reference(a.hidden.dtype)) {
    int64_t refused = -1;
    with_floating(a.hidden.dtype, [&]<typename T>() { refused = from_hidden_reference<T>(a); });
    return refused < 0 ? Status() : refuse_row(FromHidden::name, "hidden", refused);
  }
  const int64_t chunks = divide_up(vocabulary, lm_head::vocabulary_chunk), most_rows = std::min<int64_t>(rows, rows_at_once);
  float *logits = nullptr, *partials = nullptr, *scales = nullptr;
  ScratchArrays arrays;
  arrays.add(logits, most_rows * vocabulary);
  arrays.add(partials, most_rows * 3 * chunks);
  arrays.add(scales, most_rows);
  if (Status status = arrays.reserve(FromHidden::name, runtime); !status.ok()) return status;
  const size_t bytes = std::max(thread_bytes(vocabulary, chunks), product_scratch_bytes);
  if (Status status = reserve_thread_scratch(FromHidden::name, runtime, bytes); !status.ok()) return status;

  const Kernels& table = kernels(runtime.profile(), runtime.isa());
  const bool packed = a.packed.present();
  std::atomic<int64_t> refused{rows};
  for (int64_t first = 0; first < rows; first += rows_at_once) {
    const int64_t count = std::min<int64_t>(rows_at_once, rows - first);
    for (int64_t i = 0; i < count; ++i) scales[i] = scale_of(rules_of(a.rules, first + i, vocabulary));
    const lm_head::LogitsParams params{a.hidden.row<float>(first),
                                       packed ? a.packed.as<float>() : a.weight.as<float>(),
                                       a.hidden.stride[0],
                                       packed ? 0 : a.weight.stride[0],
                                       width,
                                       vocabulary,
                                       packed};
    Status status = runtime.parallel(FromHidden::name, chunks, 1, [&](int64_t chunk, int64_t, int thread) {
      float* scratch = static_cast<float*>(runtime.scratch(thread, bytes));
      table.hidden_sums(params, count, chunk, scales, logits, partials, chunks, scratch);
    });
    if (!status.ok()) return status;
    status = runtime.parallel(FromHidden::name, count, 1, [&](int64_t i, int64_t, int thread) {
      const ThreadMemory memory = thread_memory(runtime.scratch(thread, bytes), vocabulary, chunks);
      const Row row{logits + i * vocabulary, vocabulary, scales[i], nullptr, chunks, {}};
      const RowRules rules = rules_of(a.rules, first + i, vocabulary);
      if (!finish_row(a.tokens, a.logprob, first + i, row, rules, table, memory.choice, partials + i * 3 * chunks))
        keep_lowest(refused, first + i);
    });
    if (!status.ok()) return status;
  }
  return refused == rows ? Status() : refuse_row(FromHidden::name, "hidden", refused);
}

}  // namespace trilithon::sampling

namespace trilithon {

void register_sampling(OpRegistry& registry) {
  add_entry<sampling::FromLogits>(registry);
  add_entry<sampling::FromHidden>(registry);
}

}  // namespace trilithon
