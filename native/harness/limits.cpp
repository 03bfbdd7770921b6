#include "harness/limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "harness/columns.h"
#include "include/check.h"
#include "include/op.h"
#include "pool/float-environment.h"
#include "pool/pages.h"
#include "pool/thread-pool.h"

namespace trilithon {
namespace {

#if defined(__x86_64__)

// Independent chains of fma in registers. In assembly: from intrinsics the compiler may spill registers and time the stack.
double avx512_flops(int64_t rounds) {
  __asm__ volatile(
      "vpxorq %%zmm0, %%zmm0, %%zmm0\n vmovaps %%zmm0, %%zmm1\n"
      "1:\n"
#define TRILITHON_FMA(r) "vfmadd231ps %%zmm0, %%zmm1, %%zmm" #r "\n"
      TRILITHON_FMA(8) TRILITHON_FMA(9) TRILITHON_FMA(10) TRILITHON_FMA(11) TRILITHON_FMA(12) TRILITHON_FMA(13) TRILITHON_FMA(14)
          TRILITHON_FMA(15) TRILITHON_FMA(16) TRILITHON_FMA(17) TRILITHON_FMA(18) TRILITHON_FMA(19) TRILITHON_FMA(20) TRILITHON_FMA(21)
              TRILITHON_FMA(22) TRILITHON_FMA(23)
#undef TRILITHON_FMA
                  "dec %0\n jnz 1b\n vzeroupper\n"
      : "+r"(rounds)
      :
      : "cc", "xmm0", "xmm1", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  return 16.0 * 16 * 2;
}

double avx2_flops(int64_t rounds) {
  __asm__ volatile(
      "vxorps %%ymm0, %%ymm0, %%ymm0\n vmovaps %%ymm0, %%ymm1\n"
      "1:\n"
#define TRILITHON_FMA(r) "vfmadd231ps %%ymm0, %%ymm1, %%ymm" #r "\n"
      TRILITHON_FMA(2) TRILITHON_FMA(3) TRILITHON_FMA(4) TRILITHON_FMA(5) TRILITHON_FMA(6) TRILITHON_FMA(7) TRILITHON_FMA(8)
          TRILITHON_FMA(9) TRILITHON_FMA(10) TRILITHON_FMA(11) TRILITHON_FMA(12) TRILITHON_FMA(13)
#undef TRILITHON_FMA
              "dec %0\n jnz 1b\n vzeroupper\n"
      : "+r"(rounds)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13");
  return 12.0 * 8 * 2;
}

// Loads of whole cache lines and nothing else. `bytes` is a multiple of 512.
void avx512_read(const char* data, int64_t bytes) {
  __asm__ volatile(
      "1:\n"
      "vmovaps (%0), %%zmm0\n vmovaps 64(%0), %%zmm1\n vmovaps 128(%0), %%zmm2\n vmovaps 192(%0), %%zmm3\n"
      "vmovaps 256(%0), %%zmm4\n vmovaps 320(%0), %%zmm5\n vmovaps 384(%0), %%zmm6\n vmovaps 448(%0), %%zmm7\n"
      "add $512, %0\n sub $512, %1\n jg 1b\n vzeroupper\n"
      : "+r"(data), "+r"(bytes)
      :
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
}

void avx2_read(const char* data, int64_t bytes) {
  __asm__ volatile(
      "1:\n"
      "vmovaps (%0), %%ymm0\n vmovaps 32(%0), %%ymm1\n vmovaps 64(%0), %%ymm2\n vmovaps 96(%0), %%ymm3\n"
      "vmovaps 128(%0), %%ymm4\n vmovaps 160(%0), %%ymm5\n vmovaps 192(%0), %%ymm6\n vmovaps 224(%0), %%ymm7\n"
      "vmovaps 256(%0), %%ymm0\n vmovaps 288(%0), %%ymm1\n vmovaps 320(%0), %%ymm2\n vmovaps 352(%0), %%ymm3\n"
      "vmovaps 384(%0), %%ymm4\n vmovaps 416(%0), %%ymm5\n vmovaps 448(%0), %%ymm6\n vmovaps 480(%0), %%ymm7\n"
      "add $512, %0\n sub $512, %1\n jg 1b\n vzeroupper\n"
      : "+r"(data), "+r"(bytes)
      :
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
}

#endif

// One multiply and one add per step and lane, no fma: what the baseline instruction set can do in one cycle per operation.
double scalar_flops(int64_t rounds) {
  float v[16] = {};
  for (int64_t i = 0; i < rounds; ++i) {
    for (int lane = 0; lane < 16; ++lane) v[lane] = v[lane] * 0.5f + 1.0f;
    __asm__ volatile("" : : "r"(v) : "memory");
  }
  return 16.0 * 2;
}

double flops_per_round(Isa isa, int64_t rounds) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512_flops(rounds);
  if (isa == Isa::avx2) return avx2_flops(rounds);
#endif
  (void)isa;
  return scalar_flops(rounds);
}

// Words in eight sums, so that the additions of one do not wait for those of another.
void scalar_read(const char* data, int64_t bytes) {
  const uint64_t* words = reinterpret_cast<const uint64_t*>(data);
  uint64_t sums[8] = {};
  for (int64_t i = 0; i < bytes / 8; i += 8) {
    for (int k = 0; k < 8; ++k) sums[k] += words[i + k];
  }
  __asm__ volatile("" : : "r"(sums) : "memory");
}

void read_bytes(Isa isa, const char* data, int64_t bytes) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512_read(data, bytes);
  if (isa == Isa::avx2) return avx2_read(data, bytes);
#endif
  (void)isa;
  scalar_read(data, bytes);
}

// An entry with the arguments of a usual op and nothing to do.
struct Idle {
  static constexpr const char* op = "idle";
  static constexpr const char* name = "idle";
  static constexpr const char* summary = "Nothing.";
  TensorView x, weight, y;
  double number = 0;
  bool flag = false;
  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "[tokens, width]", strided_rows);
    v.input("weight", weight, floats, "[width]");
    v.output("y", y, floats, "[tokens, width]", strided_rows);
    v.number("number", number);
    v.flag("flag", flag);
  }
};

Status run(const Idle& a, Runtime& runtime) {
  Check check(Idle::name);
  Dim tokens("tokens"), width("width");
  check.shape("x", a.x, {&tokens, &width});
  check.shape("weight", a.weight, {&width});
  check.shape("y", a.y, {&tokens, &width});
  if (!check.ok()) return check.status();
  return runtime.parallel(Idle::name, tokens, tokens, [&a](int64_t, int64_t, int) { a.y.as<float>()[0] = a.x.as<float>()[0]; });
}

double median(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

double measure_peak_gflops(Isa isa, int threads, Clock clock) {
  ThreadPool pool(threads);
  struct Job {
    Isa isa;
    int64_t rounds;
    double flops;
  } job{isa, 4000, 0};
  job.flops = flops_per_round(isa, 1);
  // Several chunks for each thread, so that one that comes late takes what is left.
  const int chunks = 8 * threads;
  double best = 0;
  for (int repeat = 0; repeat < 300; ++repeat) {
    const double start = seconds(clock, threads);
    pool.run(
        chunks, [](void* context, int64_t, int) { flops_per_round(static_cast<Job*>(context)->isa, static_cast<Job*>(context)->rounds); },
        &job, Profile::fp32, nullptr);
    best = std::max(best, job.flops * static_cast<double>(job.rounds) * chunks / (seconds(clock, threads) - start));
  }
  return best * 1e-9;
}

double measure_read_gbs(Isa isa, double bytes, int threads, Clock clock) {
  constexpr int64_t most = 1 << 20;
  const int64_t whole = std::max<int64_t>(512, static_cast<int64_t>(bytes) / 512 * 512);
  ThreadPool pool(threads);
  const Pages pages(static_cast<size_t>(whole));
  if (pages.data() == nullptr) return 0;
  for (int64_t i = 0; i < whole; i += 64) pages.data()[i] = 1;
  struct Job {
    Isa isa;
    const char* data;
    int64_t bytes, chunk;
  } job{isa, pages.data(), whole, std::min(most, (whole / 512 + 4 * threads - 1) / (4 * threads) * 512)};
  double best = 0;
  const int repeats = std::max(5, std::min(200, static_cast<int>(2e9 / bytes)));
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const double start = seconds(clock, threads);
    pool.run((job.bytes + job.chunk - 1) / job.chunk,
             [](void* context, int64_t index, int) {
               const Job& self = *static_cast<const Job*>(context);
               const int64_t begin = index * self.chunk;
               read_bytes(self.isa, self.data + begin, std::min(self.chunk, self.bytes - begin));
             },
             &job, Profile::fp32, nullptr);
    best = std::max(best, static_cast<double>(whole) / (seconds(clock, threads) - start));
  }
  return best * 1e-9;
}

WakeUp measure_wake_up(int threads) {
  ThreadPool pool(threads);
  struct Job {
    std::atomic<int> inside{0};
    int threads;
  } job;
  job.threads = threads;
  const auto once = [&] {
    job.inside = 0;
    const double start = seconds(Clock::wall, threads);
    // Each chunk waits until every thread has one, so that none is done twice by the same.
    pool.run(
        threads,
        [](void* context, int64_t, int) {
          Job& self = *static_cast<Job*>(context);
          ++self.inside;
          while (self.inside.load(std::memory_order_relaxed) < self.threads) std::this_thread::yield();
        },
        &job, Profile::fp32, nullptr);
    return seconds(Clock::wall, threads) - start;
  };
  std::vector<double> spinning, sleeping;
  for (int i = 0; i < 501; ++i) spinning.push_back(once());
  for (int i = 0; i < 101; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    sleeping.push_back(once());
  }
  return {median(spinning), median(sleeping)};
}

double measure_call(Isa isa, int threads) {
  OpRegistry registry;
  add_entry<Idle>(registry);
  const OpEntry& entry = registry[0];
  const Column column = make_column(isa, threads);
  float memory[48] = {};
  const int64_t shape[] = {1, 16};
  ArgValue args[5];
  args[0].tensor = contiguous_view(memory, DType::f32, 2, shape);
  args[1].tensor = contiguous_view(memory + 16, DType::f32, 1, shape + 1);
  args[2].tensor = contiguous_view(memory + 32, DType::f32, 2, shape);
  constexpr int calls = 1000;
  double best = 1;
  for (int repeat = 0; repeat < 50; ++repeat) {
    const double start = seconds(Clock::wall, 1);
    for (int i = 0; i < calls; ++i) {
      const FloatEnvironment environment(column.runtime->profile());
      if (!entry.run(entry, args, *column.runtime).ok()) return 0;
    }
    best = std::min(best, (seconds(Clock::wall, 1) - start) / calls);
  }
  return best;
}

}  // namespace trilithon
