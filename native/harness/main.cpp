// trilithon-harness test | bench | grad | list: the kernels without JavaScript around them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "harness/case.h"
#include "harness/columns.h"
#include "isa/cpu-features.h"

namespace trilithon {

bool Options::wants(const char* op) const { return ops.empty() || std::find(ops.begin(), ops.end(), op) != ops.end(); }

std::vector<Isa> usable_isas(const Options& options) {
  std::vector<Isa> usable;
  for (int i = 0; i < isa_count; ++i) {
    const Isa isa = static_cast<Isa>(i);
    if (!options.isas.empty() && std::find(options.isas.begin(), options.isas.end(), isa) == options.isas.end()) continue;
    const std::string reason = isa_unsupported_reason(isa, cpu_features());
    if (reason.empty()) {
      usable.push_back(isa);
    } else {
      std::fprintf(stderr, "skipped %s: %s\n", isa_name(isa), reason.c_str());
    }
  }
  return usable;
}

Column make_column(Isa isa, int threads) {
  RuntimeOptions options;
  options.isa = isa;
  options.threads = threads;
  return {std::string(isa_name(isa)) + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads"),
          std::make_unique<Runtime>(options)};
}

Column make_reference() {
  RuntimeOptions options;
  options.backend = Backend::reference;
  return {"reference", std::make_unique<Runtime>(options)};
}

namespace {

constexpr const char* usage =
    "usage: trilithon-harness test | bench | grad | list [options]\n"
    "  test    every case on every instruction set, bit for bit, with the properties it declares\n"
    "  grad    backward entries against central differences in double\n"
    "  bench   times beside the fma peak and read bandwidth of this machine\n"
    "  list    ops, entries and cases\n"
    "options: --op NAME[,NAME]  --isa scalar,avx2,avx512  --threads 1,2  --seed N  --verbose\n";

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

[[noreturn]] void refuse(const std::string& problem) {
  std::fprintf(stderr, "trilithon-harness: %s\n%s", problem.c_str(), usage);
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options options;
  if (argc < 2) refuse("no mode given");
  options.mode = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--verbose") {
      options.verbose = true;
      continue;
    }
    if (i + 1 >= argc) refuse(flag + " needs a value or is unknown");
    const std::string value = argv[++i];
    if (flag == "--op") {
      options.ops = split(value);
    } else if (flag == "--isa") {
      for (const std::string& name : split(value)) {
        int found = -1;
        for (int isa = 0; isa < isa_count; ++isa) {
          if (name == isa_name(static_cast<Isa>(isa))) found = isa;
        }
        if (found < 0) refuse("no instruction set " + name);
        options.isas.push_back(static_cast<Isa>(found));
      }
    } else if (flag == "--threads") {
      for (const std::string& count : split(value)) {
        const int threads = std::atoi(count.c_str());
        if (threads < 1 || threads > 1024) refuse("--threads " + count);
        options.threads.push_back(threads);
      }
    } else if (flag == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else {
      refuse("unknown option " + flag);
    }
  }
  for (const std::string& op : options.ops) {
    const auto named = [&op](const OpEntry& entry) { return op == entry.op; };
    if (std::none_of(all_ops().begin(), all_ops().end(), named)) refuse("no op " + op);
  }
  return options;
}

int list(const Options& options) {
  for (const OpEntry& entry : all_ops()) {
    if (!options.wants(entry.op)) continue;
    int tests = 0, gradients = 0, benches = 0;
    for (const Case& item : all_cases()) {
      if (item.entry != entry.name) continue;
      (item.bench_only ? benches : tests)++;
      if (!item.backward.empty()) ++gradients;
    }
    std::printf("%-28s %3d tests, %2d gradients, %2d benches   %s\n", entry.name, tests, gradients, benches, entry.summary);
  }
  return 0;
}

}  // namespace

int harness_main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.mode == "test") return run_tests(options);
  if (options.mode == "grad") return run_gradients(options);
  if (options.mode == "bench") return run_benchmarks(options);
  if (options.mode == "list") return list(options);
  refuse("unknown mode " + options.mode);
}

}  // namespace trilithon

int main(int argc, char** argv) { return trilithon::harness_main(argc, argv); }
