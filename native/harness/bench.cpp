// Mode bench: time of the bench cases beside what the machine can do at most, measured in the same run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "harness/columns.h"
#include "harness/execute.h"
#include "harness/limits.h"
#include "pool/float-environment.h"

namespace trilithon {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Timing {
  double best = 0, median = 0;
};

Timing time_case(const OpEntry& entry, const CaseData& data, Runtime& runtime) {
  // Contiguous tensors in pages of their own: benchmarks are about the kernel, not about guards.
  std::vector<Pages> memory;
  std::vector<ArgValue> args(entry.args.size());
  for (const TensorSpec& spec : data.tensors) {
    ArgValue& arg = args[static_cast<size_t>(entry.find(spec.name.c_str()))];
    arg.tensor = contiguous_view(nullptr, spec.dtype, static_cast<int>(spec.shape.size()), spec.shape.data());
    const size_t bytes = static_cast<size_t>(span_bytes(arg.tensor));
    memory.emplace_back(bytes);
    arg.tensor.data = memory.back().data();
    const auto values = data.values.find(spec.name);
    GuardedTensor filled(spec, spec.dtype, 0);
    if (values != data.values.end()) filled.write(values->second, spec.fill.raw_bits);
    std::copy_n(static_cast<const char*>(filled.view().data), spec.pitch > 0 ? 0 : bytes, memory.back().data());
  }
  for (const auto& [name, value] : data.scalars) {
    ArgValue& arg = args[static_cast<size_t>(entry.find(name.c_str()))];
    arg.number = value;
    arg.integer = static_cast<int64_t>(value);
  }
  const FloatEnvironment environment(runtime.profile());
  std::vector<double> times;
  double total = 0;
  while (times.size() < 5 || (total < 0.4 && times.size() < 2000)) {
    const double start = now();
    const Status status = entry.run(entry, args.data(), runtime);
    const double elapsed = now() - start;
    if (!status.ok()) {
      std::printf("FAIL  %s\n", status.failure().message().c_str());
      return {};
    }
    // The first call touches memory and starts threads.
    if (total > 0 || !times.empty())
      times.push_back(elapsed);
    else
      times.reserve(64);
    total += elapsed;
  }
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

}  // namespace

int run_benchmarks(const Options& options) {
  std::vector<Isa> isas = usable_isas(options);
  if (options.isas.empty()) isas = {isas.back()};
  const std::vector<int> threads = options.threads.empty() ? std::vector<int>{1, 2} : options.threads;
  std::printf("profile fp32; best and median of repeated calls; limits measured in this run\n");
  for (const Isa isa : isas) {
    for (const int count : threads) {
      Column column = make_column(isa, count);
      const double peak = measure_peak_gflops(isa, count);
      std::map<double, double> reads;
      std::printf("%s: fma peak %.1f GFLOP/s\n", column.name.c_str(), peak);
      for (const Case& item : all_cases()) {
        const OpEntry* entry = find_op(item.entry.c_str());
        if (!item.bench_only || entry == nullptr || !options.wants(entry->op)) continue;
        const Timing timing = time_case(*entry, materialise(item, options.seed), *column.runtime);
        if (timing.best == 0) return 1;
        std::printf("  %-28s %-24s best %9.1f us, median %9.1f us", item.entry.c_str(), item.label.c_str(), timing.best * 1e6,
                    timing.median * 1e6);
        if (item.flops > 0)
          std::printf(", %7.1f GFLOP/s = %3.0f %% of peak", item.flops / timing.best * 1e-9, 100 * item.flops / timing.best * 1e-9 / peak);
        if (item.bytes > 0) {
          if (!reads.contains(item.bytes)) reads[item.bytes] = measure_read_gbs(item.bytes, count);
          const double rate = item.bytes / timing.best * 1e-9;
          std::printf(", %6.1f GB/s = %3.0f %% of a read of as many bytes (%.1f)", rate, 100 * rate / reads[item.bytes], reads[item.bytes]);
        }
        std::printf("\n");
        std::fflush(stdout);
      }
    }
  }
  return 0;
}

}  // namespace trilithon
