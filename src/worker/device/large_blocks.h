// Large pieces of memory cut from larger ones, and joined with their neighbours when they are free again. So what one
// tensor leaves serves others of any size: training needs little more memory than it uses at its fullest moment.
//
// Not for several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace assay {

class LargeBlocks {
 public:
  LargeBlocks() = default;
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;

  // `size` is a multiple of kGrain, and so is the address. Null when the system has no more.
  void* take(size_t size);
  void give_back(void* block, size_t size);
  // Gives the memory of free pieces back to the system; their addresses stay ours.
  void release();
  // Memory of free pieces that the system still counts as ours.
  size_t cached_bytes() const { return cached_; }

  static constexpr size_t kGrain = 64;

 private:
  struct Free {
    size_t size;
    size_t used_before;  // bytes at its beginning that hold memory of the system; the rest was never touched
  };
  void add(char* at, Free piece);
  void remove(std::map<char*, Free>::iterator piece);
  bool map_more(size_t size);

  std::map<char*, Free> by_address_;
  std::set<std::pair<size_t, char*>> by_size_;
  size_t cached_ = 0;
};

}  // namespace assay
