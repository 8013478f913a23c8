// Waiting for a word that another process changes: spins for a moment, then sleeps in the kernel. Knows nothing of what
// the word means.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/call.h"

namespace assay::comm {

// In shared memory. All zero at the beginning.
struct SharedWord {
  alignas(64) std::atomic<uint32_t> value;
  std::atomic<uint32_t> sleepers;
};

// Changes the word and wakes who sleeps for it.
void publish(SharedWord& word, uint32_t value);
// Returns when the word is no longer `old`; throws what guard.check() throws. `spin`: whether the one who changes it
// runs on another core at this moment, most likely.
void await_change(SharedWord& word, uint32_t old, bool spin, const Guard& guard);

}  // namespace assay::comm
