// The limits of this machine, measured beside the ops: fp32 peak and read bandwidth.
#pragma once

#include "isa/isa.h"

namespace trilithon {

// Flops of fused multiply-adds on all threads together, GFLOP/s: best of many short windows.
double measure_peak_gflops(Isa isa, int threads);

// Reading a buffer of `bytes` on all threads together, GB/s: best of several passes.
double measure_read_gbs(double bytes, int threads);

}  // namespace trilithon
