#include "device/large_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

namespace assay {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;  // x86-64
constexpr size_t kRegion = size_t{1} << 30;    // address space asked for at once; costs nothing until it is touched

size_t round_up(size_t value, size_t step) { return (value + step - 1) / step * step; }

}  // namespace

void* LargeBlocks::take(size_t size) {
  auto best = by_size_.lower_bound({size, nullptr});
  if (best == by_size_.end()) {
    if (!map_more(size)) return nullptr;
    best = by_size_.lower_bound({size, nullptr});
  }
  char* at = best->second;
  const auto found = by_address_.find(at);
  const Free piece = found->second;
  remove(found);
  if (piece.size > size) {
    add(at + size, {piece.size - size, piece.used_before > size ? piece.used_before - size : 0});
  }
  return at;
}

void LargeBlocks::give_back(void* block, size_t size) {
  char* at = static_cast<char*>(block);
  Free piece{size, size};
  const auto next = by_address_.lower_bound(at);
  if (next != by_address_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second.size == at) {
      at = previous->first;
      piece = {piece.size + previous->second.size, piece.size + previous->second.size};
      remove(previous);
    }
  }
  if (next != by_address_.end() && at + piece.size == next->first) {
    // What of the next one was used is counted from here on; it begins where this one ends.
    piece = {piece.size + next->second.size, piece.size + next->second.used_before};
    remove(next);
  }
  add(at, piece);
}

void LargeBlocks::release() {
  for (auto& [at, piece] : by_address_) {
    const auto address = reinterpret_cast<uintptr_t>(at);
    const uintptr_t first = round_up(address, kPage), end = (address + piece.size) / kPage * kPage;
    if (end > first) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
    cached_ -= piece.used_before;
    piece.used_before = 0;
  }
}

void LargeBlocks::add(char* at, Free piece) {
  by_address_[at] = piece;
  by_size_.insert({piece.size, at});
  cached_ += piece.used_before;
}

void LargeBlocks::remove(std::map<char*, Free>::iterator piece) {
  by_size_.erase({piece->second.size, piece->first});
  cached_ -= piece->second.used_before;
  by_address_.erase(piece);
}

// A region of its own for what is larger than the usual one; the usual one again in smaller steps when memory is short.
bool LargeBlocks::map_more(size_t size) {
  for (size_t region : {std::max(kRegion, round_up(size, kHugePage)), round_up(size, kHugePage)}) {
    if (region < size) return false;  // the sum ran over
    void* mapped = ::mmap(nullptr, region + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) continue;
    char* at = reinterpret_cast<char*>(round_up(reinterpret_cast<uintptr_t>(mapped), kHugePage));
    ::madvise(at, region, MADV_HUGEPAGE);
    add(at, {region, 0});
    return true;
  }
  return false;
}

}  // namespace assay
