#include "device/allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace assay {

namespace {

constexpr size_t kAlignment = 64;              // a cache line, and the widest vector register
constexpr size_t kHugePage = size_t{2} << 20;  // x86-64
constexpr size_t kSmallestBlock = 64;
constexpr size_t kHeader = kAlignment;  // keeps the block's size in front of the data
// What glibc keeps when other code, such as oneDNN's scratch memory, frees it: up to a block of 32 MB, the most that it
// accepts (it ignores more without a word and then maps every block above 128 KB anew).
constexpr int kLargestKeptBlock = 32 << 20;
constexpr int kKeepBytes = 1 << 30;

struct BlockHeader {
  size_t size;
};

class Cache {
 public:
  void* take(size_t num_bytes) {
    const size_t size = block_size(num_bytes);
    void* block = nullptr;
    {
      std::lock_guard lock(mutex_);
      auto& free_blocks = free_[size];
      if (!free_blocks.empty()) {
        block = free_blocks.back();
        free_blocks.pop_back();
        stats_.cached_bytes -= static_cast<int64_t>(size);
      }
    }
    if (!block) block = from_system(size);
    std::lock_guard lock(mutex_);
    stats_.in_use_bytes += static_cast<int64_t>(size);
    stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.in_use_bytes);
    return static_cast<char*>(block) + kHeader;
  }

  void give_back(void* data) {
    void* block = static_cast<char*>(data) - kHeader;
    const size_t size = static_cast<BlockHeader*>(block)->size;
    std::lock_guard lock(mutex_);
    free_[size].push_back(block);
    stats_.in_use_bytes -= static_cast<int64_t>(size);
    stats_.cached_bytes += static_cast<int64_t>(size);
  }

  void release() {
    std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : free_) {
      for (void* block : blocks) std::free(block);
      blocks.clear();
    }
    stats_.cached_bytes = 0;
  }

  AllocatorStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  void* from_system(size_t size) {
    if (size > SIZE_MAX - kHeader) throw std::bad_alloc();
    const size_t alignment = size >= kHugePage ? kHugePage : kAlignment;
    const size_t total = size + kHeader;
    void* block = nullptr;
    if (::posix_memalign(&block, alignment, total) != 0) {
      release();  // blocks of other sizes may make room
      if (::posix_memalign(&block, alignment, total) != 0) {
        throw OutOfMemoryError(
            fmt::format("out of memory: a tensor of {:.1f} MB could not be allocated; {:.1f} MB are "
                        "in use by tensors. A smaller batch size needs less",
                        size / 1e6, stats().in_use_bytes / 1e6));
      }
    }
    if (size >= kHugePage) ::madvise(block, total, MADV_HUGEPAGE);
    static_cast<BlockHeader*>(block)->size = size;
    return block;
  }

  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_;  // guarded by mutex_
  AllocatorStats stats_;                                 // guarded by mutex_
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
  if (num_bytes > SIZE_MAX / 4) return num_bytes;  // cannot be had; the system says so
  const size_t power = std::bit_floor(num_bytes - 1);
  const size_t step = std::max(power / 8, kAlignment);
  return (num_bytes + step - 1) / step * step;
}

void install_caching_allocator() {
  if (g_installed.exchange(true)) return;
  const bool accepted = ::mallopt(M_MMAP_THRESHOLD, kLargestKeptBlock) && ::mallopt(M_TRIM_THRESHOLD, kKeepBytes) &&
                        ::mallopt(M_TOP_PAD, 64 << 20);
  ASSAY_CHECK(accepted, "the C library refused a setting of its allocator");
  static CachingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/100);
}

bool caching_allocator_installed() { return g_installed.load(); }
AllocatorStats allocator_stats() { return cache().stats(); }
void release_cached_memory() { cache().release(); }

}  // namespace assay
