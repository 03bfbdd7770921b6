// What the processor under us can do, asked of the processor itself.
//
// A flag is true only when both the processor implements the instructions and the operating system saves the registers
// they use: an AVX-512 instruction on a kernel that does not save zmm registers is an illegal instruction.
#pragma once

namespace trilithon {

struct CpuFeatures {
  bool sse4_2 = false;
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512vl = false;
  bool avx512dq = false;
  bool avx512vnni = false;
  bool avx512bf16 = false;
  bool avx512fp16 = false;
  bool amx_tile = false;
  bool amx_bf16 = false;
  bool amx_int8 = false;
  // Why AMX is off although the processor has it; empty otherwise.
  char amx_reason[96] = "";
  char vendor[13] = "";
  char model[64] = "";
};

// Detects once per process. The first call asks the kernel for permission to use AMX tiles, which holds for the whole
// process and has to happen before other threads start computing.
const CpuFeatures& cpu_features();

}  // namespace trilithon
