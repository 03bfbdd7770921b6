// The limits of this machine, measured beside the ops: fp32 peak, read bandwidth, and what calling costs.
#pragma once

#include "harness/clock.h"
#include "isa/isa.h"

namespace trilithon {

// Flops of fused multiply-adds on all threads together, GFLOP/s: best of many short windows. Of the scalar table: of
// multiplications and additions, which the processor has without fma.
double measure_peak_gflops(Isa isa, int threads, Clock clock);

// Reading a buffer of `bytes` on all threads together with the widest loads of the table, GB/s: best of several passes.
double measure_read_gbs(Isa isa, double bytes, int threads, Clock clock);

// From handing a job of one tiny chunk per thread to the pool until all are done, in seconds: median of many.
struct WakeUp {
  double spinning;  // right after the last job, while the threads still wait in a loop
  double sleeping;  // after a pause, when they have to be woken
};
WakeUp measure_wake_up(int threads);

// One call of an entry that does next to nothing, as the binding makes it: checks, one chunk, no other thread. Seconds.
double measure_call(Isa isa, int threads);

}  // namespace trilithon
