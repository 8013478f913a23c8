#include "comm/shm_stream.h"

#include <algorithm>
#include <cstring>

namespace assay::comm {

namespace {
// A reader begins while a writer goes on: half of the ring at a time at most.
constexpr size_t kPiece = ShmRing::kBytes / 4;
}  // namespace

ShmStream::ShmStream(std::shared_ptr<ShmGroup> group, int peer)
    : group_(std::move(group)), out_(group_->ring(group_->index(), peer)), in_(group_->ring(peer, group_->index())) {}

void ShmStream::put(const std::byte* data, size_t bytes) {
  const uint64_t head = out_.head.load(std::memory_order_relaxed);
  const size_t at = head % ShmRing::kBytes;
  const size_t first = std::min(bytes, ShmRing::kBytes - at);
  std::memcpy(out_.data + at, data, first);
  if (bytes > first) std::memcpy(out_.data, data + first, bytes - first);
  out_.head.store(head + bytes, std::memory_order_release);
}

void ShmStream::write(const void* data, size_t bytes, Guard& guard) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    guard.restart();
    size_t room = 0;
    while (true) {
      const uint32_t seen = out_.read.value.load(std::memory_order_acquire);
      room = ShmRing::kBytes - (out_.head.load(std::memory_order_relaxed) - out_.tail.load(std::memory_order_acquire));
      if (room > 0) break;
      await_change(out_.read, seen, group_->spin(), guard);
    }
    const size_t piece = std::min({bytes, room, kPiece});
    put(from, piece);
    publish(out_.written, out_.written.value.load(std::memory_order_relaxed) + 1);
    from += piece;
    bytes -= piece;
  }
}

void ShmStream::read(void* data, size_t bytes, Guard& guard) {
  auto* to = static_cast<std::byte*>(data);
  while (bytes > 0) {
    guard.restart();
    size_t available = 0;
    const uint64_t tail = in_.tail.load(std::memory_order_relaxed);
    while (true) {
      const uint32_t seen = in_.written.value.load(std::memory_order_acquire);
      available = in_.head.load(std::memory_order_acquire) - tail;
      if (available > 0) break;
      await_change(in_.written, seen, group_->spin(), guard);
    }
    const size_t piece = std::min({bytes, available, kPiece});
    const size_t at = tail % ShmRing::kBytes;
    const size_t first = std::min(piece, ShmRing::kBytes - at);
    std::memcpy(to, in_.data + at, first);
    if (piece > first) std::memcpy(to + first, in_.data, piece - first);
    in_.tail.store(tail + piece, std::memory_order_release);
    publish(in_.read, in_.read.value.load(std::memory_order_relaxed) + 1);
    to += piece;
    bytes -= piece;
  }
}

bool ShmStream::try_write(const void* head, size_t head_bytes, const void* data, size_t bytes) {
  const size_t room =
      ShmRing::kBytes - (out_.head.load(std::memory_order_relaxed) - out_.tail.load(std::memory_order_acquire));
  if (head_bytes + bytes > room) return false;
  put(static_cast<const std::byte*>(head), head_bytes);
  if (bytes > 0) put(static_cast<const std::byte*>(data), bytes);
  publish(out_.written, out_.written.value.load(std::memory_order_relaxed) + 1);
  return true;
}

}  // namespace assay::comm
