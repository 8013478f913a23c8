#include "comm/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace assay::comm {

namespace {

// A peer that runs at this moment answers within microseconds. One that does not may wait for this very core: it comes
// first then, and after some rounds of that sleeping is cheaper.
constexpr int kSpins = 64;
constexpr int kYieldsSpinning = 32;
constexpr int kYields = 4;
constexpr long kSleep_ns = 20'000'000;  // how late a failure of the job is noticed

inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void publish(SharedWord& word, uint32_t value) {
  word.value.store(value, std::memory_order_seq_cst);
  if (word.sleepers.load(std::memory_order_seq_cst) == 0) return;
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word.value), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void await_change(SharedWord& word, uint32_t old, bool spin, const Guard& guard) {
  const auto changed = [&] { return word.value.load(std::memory_order_acquire) != old; };
  if (spin) {
    for (int i = 0; i < kSpins; ++i) {
      if (changed()) return;
      pause_core();
    }
  }
  for (int i = 0; i < (spin ? kYieldsSpinning : kYields); ++i) {
    if (changed()) return;
    ::sched_yield();
  }
  while (!changed()) {
    word.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (word.value.load(std::memory_order_seq_cst) == old) {
      const timespec patience = {0, kSleep_ns};
      ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word.value), FUTEX_WAIT, old, &patience, nullptr, 0);
    }
    word.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (!changed()) guard.check();
  }
}

}  // namespace assay::comm
