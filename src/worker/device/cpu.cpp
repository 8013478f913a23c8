#include "device/cpu.h"

#include <oneapi/dnnl/dnnl.h>

#include <ATen/ATen.h>

#include <fstream>
#include <thread>
#include <vector>

#include "base/text.h"
#include "base/time.h"
#include "device/threads.h"

namespace assay {

namespace {

// The number of kB after "Key:" in a file like /proc/meminfo.
std::optional<int64_t> kilobytes_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind(key + ":", 0) != 0) continue;
    const std::string_view text = trim(std::string_view(line).substr(key.size() + 1));
    if (const auto value = parse_int(text.substr(0, text.find(' ')))) return *value * 1024;
  }
  return std::nullopt;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0) return std::string(trim(line.substr(line.find(':') + 1)));
  }
  return "unknown";
}

constexpr int kChains = 12;           // enough independent chains to hide a latency of 4 cycles on 2 units
constexpr int64_t kRounds = 200'000;  // one call: a few milliseconds

typedef float Vector4 __attribute__((vector_size(16)));
typedef float Vector8 __attribute__((vector_size(32)));
typedef float Vector16 __attribute__((vector_size(64)));

// Twelve chains of x = x * a + b; returns a value that depends on all of them.
template <typename Vector>
[[gnu::always_inline]] inline float fma_rounds() {
  Vector x[kChains];
  for (int i = 0; i < kChains; ++i) x[i] = Vector{} + static_cast<float>(i);
  const Vector a = Vector{} + 0.999f;
  const Vector b = Vector{} + 0.001f;
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) x[i] = x[i] * a + b;
  }
  float sum = 0;
  for (int i = 0; i < kChains; ++i) sum += x[i][0];
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,fma"), noinline)) float fma_avx512() { return fma_rounds<Vector16>(); }
__attribute__((target("avx2,fma"), noinline)) float fma_avx2() { return fma_rounds<Vector8>(); }
#endif
__attribute__((noinline)) float fma_plain() { return fma_rounds<Vector4>(); }

struct FmaKernel {
  float (*run)();
  int lanes;
};

FmaKernel widest_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {fma_avx512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {fma_avx2, 8};
#endif
  return {fma_plain, 4};
}

std::string simd_level() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return "avx512";
  if (__builtin_cpu_supports("avx2")) return "avx2";
  if (__builtin_cpu_supports("avx")) return "avx";
  return "sse2";
#elif defined(__aarch64__)
  return "neon";
#else
  return "unknown";
#endif
}

}  // namespace

// An upper limit, whatever the processor has.
void avoid_matrix_registers() { dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16); }

CpuInfo cpu_info() {
  return {.model = cpu_model(),
          .logical_cores = static_cast<int>(std::thread::hardware_concurrency()),
          .usable_cores = usable_cores(),
          .simd = simd_level(),
          .memory_bytes = kilobytes_of("/proc/meminfo", "MemTotal").value_or(0),
          .available_memory_bytes = kilobytes_of("/proc/meminfo", "MemAvailable").value_or(0)};
}

std::optional<int64_t> peak_resident_bytes() { return kilobytes_of("/proc/self/status", "VmHWM"); }

double measure_fma_gflops(int num_threads, double seconds) {
  const FmaKernel kernel = widest_kernel();
  std::vector<double> rates(static_cast<size_t>(num_threads), 0);
  std::vector<std::thread> threads;
  for (double& rate : rates) {
    threads.emplace_back([&rate, &kernel, seconds] {
      volatile float sink = kernel.run();  // warms up clock and vector units
      const Stopwatch watch;
      int64_t calls = 0;
      do {
        sink = kernel.run();
        ++calls;
      } while (watch.seconds() < seconds);
      (void)sink;
      const double flops = 2.0 * kernel.lanes * kChains * kRounds * static_cast<double>(calls);
      rate = flops / watch.seconds() / 1e9;
    });
  }
  for (std::thread& thread : threads) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

double measure_sgemm_gflops(double seconds) {
  constexpr int64_t kSize = 1024;
  const at::Tensor a = at::ones({kSize, kSize});
  const at::Tensor b = at::ones({kSize, kSize});
  at::Tensor c = at::empty({kSize, kSize});
  at::mm_out(c, a, b);
  const Stopwatch total;
  double best = 0;
  do {
    const Stopwatch watch;
    at::mm_out(c, a, b);
    best = std::max(best, 2.0 * kSize * kSize * kSize / watch.seconds() / 1e9);
  } while (total.seconds() < seconds);
  return best;
}

}  // namespace assay
