#include "harness/limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "pool/pages.h"
#include "pool/thread-pool.h"

namespace trilithon {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

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

}  // namespace

double measure_peak_gflops(Isa isa, int threads) {
  ThreadPool pool(threads);
  struct Job {
    Isa isa;
    int64_t rounds;
    double flops;
  } job{isa, 20000, 0};
  job.flops = flops_per_round(isa, 1);
  double best = 0;
  for (int repeat = 0; repeat < 200; ++repeat) {
    const double start = now();
    pool.run(
        threads, [](void* context, int64_t, int) { flops_per_round(static_cast<Job*>(context)->isa, static_cast<Job*>(context)->rounds); },
        &job, Profile::fp32, nullptr);
    best = std::max(best, job.flops * static_cast<double>(job.rounds) * threads / (now() - start));
  }
  return best * 1e-9;
}

double measure_read_gbs(double bytes, int threads) {
  ThreadPool pool(threads);
  const Pages pages(static_cast<size_t>(bytes));
  if (pages.data() == nullptr) return 0;
  const int64_t words = static_cast<int64_t>(bytes) / 8;
  uint64_t* data = reinterpret_cast<uint64_t*>(pages.data());
  for (int64_t i = 0; i < words; ++i) data[i] = static_cast<uint64_t>(i);
  struct Job {
    const uint64_t* data;
    int64_t words, chunk;
    uint64_t sink[64];
  } job{data, words, 128 * 1024, {}};
  double best = 0;
  const int repeats = std::max(5, std::min(200, static_cast<int>(2e9 / bytes)));
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const double start = now();
    pool.run((words + job.chunk - 1) / job.chunk,
             [](void* context, int64_t index, int thread) {
               Job& self = *static_cast<Job*>(context);
               const int64_t begin = index * self.chunk, end = std::min(begin + self.chunk, self.words);
               // Eight sums, so that the additions of one do not wait for those of another.
               uint64_t s[8] = {};
               int64_t i = begin;
               for (; i + 64 <= end; i += 64) {
                 for (int j = 0; j < 8; ++j) {
                   for (int k = 0; k < 8; ++k) s[k] += self.data[i + 8 * j + k];
                 }
               }
               self.sink[thread % 64] += s[0] ^ s[1] ^ s[2] ^ s[3] ^ s[4] ^ s[5] ^ s[6] ^ s[7];
             },
             &job, Profile::fp32, nullptr);
    best = std::max(best, static_cast<double>(words) * 8 / (now() - start));
  }
  __asm__ volatile("" : : "r"(&job) : "memory");
  return best * 1e-9;
}

}  // namespace trilithon
