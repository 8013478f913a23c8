// How many threads this process computes with. libtorch's own default is wrong on most machines (half the cores, one on
// small ones), so the worker decides before its first tensor. Knows nothing of ranks beyond how many share the host.
#pragma once

#include <string>

namespace assay {

// Cores this process may use: its affinity mask, limited by the control group's quota (rounded up). At least 1.
int usable_cores();

struct ThreadChoice {
  int threads = 1;
  std::string reason;  // "2 usable cores, 1 rank on this host" or "ASSAY_THREADS=1"
};

// ASSAY_THREADS when set (ConfigError when it is not a positive number), else the usable cores shared between the ranks
// of this host.
ThreadChoice choose_threads(int num_local_ranks);

// Chooses, and sets it for libtorch, OpenMP and OpenBLAS; avoid_matrix_registers() of cpu.h too. Call once, before the
// first operation.
ThreadChoice configure_threads(int num_local_ranks);

// Call first in a thread that works beside training (a loader, a writer): its tensor operations stay on it. Otherwise
// OpenMP makes a second team for it, sees more threads than cores, and lets the threads of *all* teams sleep at every
// barrier; training then loses a quarter of its speed.
void compute_on_this_thread_alone();

}  // namespace assay
