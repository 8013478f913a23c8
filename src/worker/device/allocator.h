// Memory for tensors. glibc returns a freed activation to the system and pays page faults for it in the next step,
// which makes stock C++ training slower than Python's; this allocator keeps what is freed and hands it out again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay {

struct AllocatorStats {
  int64_t in_use_bytes = 0;
  int64_t peak_bytes = 0;    // largest in_use_bytes so far
  int64_t cached_bytes = 0;  // freed, kept for the next request
};

// Replaces libtorch's CPU allocator for the rest of the process, and tells glibc to keep what other code frees. Call
// before the first tensor is made; a second call does nothing.
void install_caching_allocator();
bool caching_allocator_installed();

AllocatorStats allocator_stats();
// Memory of tensors that did not come from here, such as buffers shared with other processes: counted as in use.
void count_foreign_memory(int64_t bytes);
// Gives every cached block back to the system.
void release_cached_memory();

// The size of the block that serves a request, a multiple of 64 bytes: up to an eighth more than asked for below a
// megabyte, the next multiple above.
size_t block_size(size_t num_bytes);

}  // namespace assay
