// The processor: what it is, what it can compute at most, and what matrix products really reach on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay {

struct CpuInfo {
  std::string model;  // as the kernel names it; "unknown" when it does not
  int logical_cores = 0;
  int usable_cores = 0;
  std::string simd;  // widest of "avx512", "avx2", "avx", "sse2", or the architecture's name
  int64_t memory_bytes = 0;
  int64_t available_memory_bytes = 0;
};
CpuInfo cpu_info();

// Keeps oneDNN from the matrix registers (AMX) of newer processors: its version 2.6 neither asks the kernel for them
// nor sets them up in all of its products, which ends the process with an illegal instruction. Call before the first
// product; as often as one likes. Does nothing where there are none.
void avoid_matrix_registers();

// The largest amount of memory this process has held, in bytes; nullopt when the kernel does not say.
std::optional<int64_t> peak_resident_bytes();

// Single-precision GFLOPS of a loop of independent fused multiply-adds in registers, on this many threads at once: what
// the processor can do at most while its clock is what it is.
double measure_fma_gflops(int num_threads, double seconds);
// Single-precision GFLOPS of libtorch's matrix product with the BLAS and the threads in use. Best of several runs.
double measure_sgemm_gflops(double seconds);

}  // namespace assay
