#include "device/allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>
#include <malloc.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "device/large_blocks.h"

namespace assay {

namespace {

constexpr size_t kAlignment = LargeBlocks::kGrain;  // a cache line, and the widest vector register
constexpr size_t kSmallestBlock = 64;
constexpr size_t kLargeBlock = size_t{1} << 20;
constexpr size_t kHeader = kAlignment;  // keeps the block's size in front of the data
// What glibc keeps when other code, such as oneDNN's scratch memory, frees it: up to a block of 32 MB, the most that it
// accepts (it ignores more without a word and then maps every block above 128 KB anew).
constexpr int kLargestKeptBlock = 32 << 20;
constexpr int kKeepBytes = 1 << 30;

struct BlockHeader {
  size_t size;
};

// Small blocks are kept by size, large ones are cut to measure.
class Cache {
 public:
  void* take(size_t num_bytes) {
    const size_t size = block_size(num_bytes);
    std::lock_guard lock(mutex_);
    void* block = size >= kLargeBlock ? take_large(size) : take_small(size);
    static_cast<BlockHeader*>(block)->size = size;
    stats_.in_use_bytes += static_cast<int64_t>(size);
    stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.in_use_bytes);
    return static_cast<char*>(block) + kHeader;
  }

  void give_back(void* data) {
    void* block = static_cast<char*>(data) - kHeader;
    const size_t size = static_cast<BlockHeader*>(block)->size;
    std::lock_guard lock(mutex_);
    if (size >= kLargeBlock) {
      large_.give_back(block, size + kHeader);
    } else {
      small_[size].push_back(block);
      small_cached_ += size;
    }
    stats_.in_use_bytes -= static_cast<int64_t>(size);
  }

  void count_foreign(int64_t bytes) {
    std::lock_guard lock(mutex_);
    stats_.in_use_bytes += bytes;
    stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.in_use_bytes);
  }

  void release() {
    std::lock_guard lock(mutex_);
    release_locked();
  }

  AllocatorStats stats() {
    std::lock_guard lock(mutex_);
    AllocatorStats stats = stats_;
    stats.cached_bytes = static_cast<int64_t>(small_cached_ + large_.cached_bytes());
    return stats;
  }

 private:
  void* take_large(size_t size) {
    if (size > SIZE_MAX - kHeader) throw std::bad_alloc();
    void* block = large_.take(size + kHeader);
    return block ? block : fail(size);
  }

  void* take_small(size_t size) {
    auto& free_blocks = small_[size];
    if (!free_blocks.empty()) {
      void* block = free_blocks.back();
      free_blocks.pop_back();
      small_cached_ -= size;
      return block;
    }
    void* block = nullptr;
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (::posix_memalign(&block, kAlignment, size + kHeader) == 0) return block;
      release_locked();  // blocks of other sizes may make room
    }
    return fail(size);
  }

  [[noreturn]] void* fail(size_t size) {
    throw OutOfMemoryError(
        fmt::format("out of memory: a tensor of {:.1f} MB could not be allocated; {:.1f} MB are in use by tensors. A "
                    "smaller batch size needs less",
                    size / 1e6, stats_.in_use_bytes / 1e6));
  }

  void release_locked() {
    for (auto& [size, blocks] : small_) {
      for (void* block : blocks) std::free(block);
      blocks.clear();
    }
    small_cached_ = 0;
    large_.release();
  }

  // All guarded by mutex_.
  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> small_;  // free ones
  size_t small_cached_ = 0;
  LargeBlocks large_;
  AllocatorStats stats_;  // without cached_bytes
};

// Never destroyed: tensors with static lifetime give memory back after main.
Cache& cache() {
  static Cache* instance = new Cache;
  return *instance;
}

void free_block(void* data) {
  if (data) cache().give_back(data);
}

class CachingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t num_bytes) const override {
    void* data = num_bytes == 0 ? nullptr : cache().take(num_bytes);
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
};

std::atomic<bool> g_installed{false};

}  // namespace

size_t block_size(size_t num_bytes) {
  if (num_bytes <= kSmallestBlock) return kSmallestBlock;
  if (num_bytes >= kLargeBlock) {
    // Cut to measure. What cannot be had the system refuses.
    return num_bytes > SIZE_MAX / 4 ? num_bytes : (num_bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  const size_t power = std::bit_floor(num_bytes - 1);
  const size_t step = std::max(power / 8, kAlignment);
  return (num_bytes + step - 1) / step * step;
}

void install_caching_allocator() {
  if (g_installed.exchange(true)) return;
#if !defined(__SANITIZE_ADDRESS__)  // which has its own allocator, without settings
  const bool accepted = ::mallopt(M_MMAP_THRESHOLD, kLargestKeptBlock) && ::mallopt(M_TRIM_THRESHOLD, kKeepBytes) &&
                        ::mallopt(M_TOP_PAD, 64 << 20);
  ASSAY_CHECK(accepted, "the C library refused a setting of its allocator");
#endif
  static CachingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/100);
}

bool caching_allocator_installed() { return g_installed.load(); }
AllocatorStats allocator_stats() { return cache().stats(); }
void count_foreign_memory(int64_t bytes) { cache().count_foreign(bytes); }
void release_cached_memory() { cache().release(); }

}  // namespace assay
