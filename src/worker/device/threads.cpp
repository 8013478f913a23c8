#include "device/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "device/cpu.h"

namespace assay {

namespace {

// The quota of a control group in cores; nothing when there is none. Version 2 has "cpu.max" with "max 100000" or
// "150000 100000"; version 1 has two files.
double quota_cores() {
  std::string quota;
  double period = 0;
  if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file >> quota >> period) {
    const auto value = parse_double(quota);
    if (value && *value > 0 && period > 0) return *value / period;
    return 0;
  }
  double quota_us = 0;
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (quota_file >> quota_us && period_file >> period && quota_us > 0 && period > 0) return quota_us / period;
  return 0;
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (::sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
  if (const double quota = quota_cores(); quota > 0) cores = std::min(cores, static_cast<int>(std::ceil(quota)));
  return std::max(cores, 1);
}

ThreadChoice choose_threads(int num_local_ranks) {
  if (const char* text = std::getenv("ASSAY_THREADS"); text && *text) {
    const auto value = parse_int(text);
    if (!value || *value < 1 || *value > 4096) {
      throw ConfigError(fmt::format("ASSAY_THREADS={}: must be a number of threads, 1 or more", text));
    }
    return {static_cast<int>(*value), fmt::format("ASSAY_THREADS={}", *value)};
  }
  const int cores = usable_cores();
  const int ranks = std::max(num_local_ranks, 1);
  return {std::max(cores / ranks, 1), fmt::format("{} usable cores, {} ranks on this host", cores, ranks)};
}

ThreadChoice configure_threads(int num_local_ranks) {
  ThreadChoice choice = choose_threads(num_local_ranks);
  avoid_matrix_registers();
  at::set_num_threads(choice.threads);
  // OpenBLAS asks OpenMP at each call; telling it as well makes what it reports true.
  if (auto* set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) {
    set(choice.threads);
  }
  return choice;
}

void compute_on_this_thread_alone() {
  at::internal::lazy_init_num_threads();  // libtorch sets a thread's number at its first operation: let that be over
  omp_set_num_threads(1);                 // of this thread only
}

}  // namespace assay
