// Collectives on ordinary memory, through staging areas in chunks. A step works on up to three chunks at once, one
// barrier a step: what one step writes, the next one reads, and two areas take turns.
#include <algorithm>
#include <cstring>

#include "comm/reduce.h"
#include "comm/shm_group.h"

namespace assay::comm {

namespace {

struct Chunk {
  int64_t begin = 0;
  int64_t count = 0;
};

Chunk chunk_at(int64_t count, int64_t per_chunk, int64_t number) {
  const int64_t begin = std::min(count, number * per_chunk);
  return {begin, std::min(per_chunk, count - begin)};
}

int64_t num_chunks(int64_t count, int64_t per_chunk) { return (count + per_chunk - 1) / per_chunk; }

void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

void ShmGroup::run_staged(const Call& call, Guard& guard) {
  switch (call.kind) {
    case CallKind::AllReduce: return staged_all_reduce(call, guard);
    case CallKind::ReduceScatter:
    case CallKind::AllToAll: return staged_exchange(call, guard);
    case CallKind::AllGather: return staged_all_gather(call, guard);
    case CallKind::Broadcast: return staged_broadcast(call, guard);
    default: return;
  }
}

// Step t: copies chunk t in, reduces this member's share of chunk t-1, copies chunk t-2 out. The own share is read
// where it lies and written where it belongs.
void ShmGroup::staged_all_reduce(const Call& call, Guard& guard) {
  const auto width = static_cast<int64_t>(size_of(call.type));
  const int64_t per_chunk = chunk_bytes_ / width;
  const int64_t chunks = num_chunks(call.count, per_chunk);
  auto* data = static_cast<std::byte*>(call.output);
  for (int64_t step = 0; step < chunks + 2; ++step) {
    if (step < chunks) {
      const Chunk chunk = chunk_at(call.count, per_chunk, step);
      const Range own = share_of(chunk.count, static_cast<size_t>(width), index_, size_);
      std::byte* from = data + chunk.begin * width;
      std::byte* to = stage(index_, static_cast<uint64_t>(step));
      copy_bytes(to, from, own.begin * width);
      copy_bytes(to + own.end * width, from + own.end * width, (chunk.count - own.end) * width);
    }
    if (step >= 1 && step <= chunks) {
      const Chunk chunk = chunk_at(call.count, per_chunk, step - 1);
      const Range own = share_of(chunk.count, static_cast<size_t>(width), index_, size_);
      std::byte* mine = data + (chunk.begin + own.begin) * width;
      std::vector<const void*> inputs;
      for (int member = 0; member < size_; ++member) {
        inputs.push_back(member == index_ ? mine : stage(member, static_cast<uint64_t>(step - 1)) + own.begin * width);
      }
      std::byte* shared = result(static_cast<uint64_t>(step - 1)) + own.begin * width;
      combine(inputs, {mine, shared}, own.end - own.begin, call.type, call.op);
    }
    if (step >= 2) {
      const Chunk chunk = chunk_at(call.count, per_chunk, step - 2);
      const Range own = share_of(chunk.count, static_cast<size_t>(width), index_, size_);
      const std::byte* from = result(static_cast<uint64_t>(step - 2));
      std::byte* to = data + chunk.begin * width;
      copy_bytes(to, from, own.begin * width);
      copy_bytes(to + own.end * width, from + own.end * width, (chunk.count - own.end) * width);
    }
    if (step + 1 < chunks + 2) barrier(guard);
  }
}

// Reduce-scatter and all-to-all: a chunk holds a piece for each member.
void ShmGroup::staged_exchange(const Call& call, Guard& guard) {
  const auto width = static_cast<int64_t>(size_of(call.type));
  const int64_t per_chunk = std::max<int64_t>(chunk_bytes_ / size_ / 64 * 64 / width, 1);
  const int64_t chunks = num_chunks(call.count, per_chunk);
  const int64_t part = call.part_bytes();
  const int64_t piece = per_chunk * width;
  const auto* input = static_cast<const std::byte*>(call.input);
  auto* output = static_cast<std::byte*>(call.output);
  for (int64_t step = 0; step < chunks + 1; ++step) {
    if (step < chunks) {
      const Chunk chunk = chunk_at(call.count, per_chunk, step);
      for (int member = 0; member < size_; ++member) {
        if (member == index_) continue;
        copy_bytes(stage(index_, static_cast<uint64_t>(step)) + member * piece,
                   input + member * part + chunk.begin * width, chunk.count * width);
      }
    }
    if (step >= 1) {
      const Chunk chunk = chunk_at(call.count, per_chunk, step - 1);
      std::vector<const void*> pieces;
      for (int member = 0; member < size_; ++member) {
        pieces.push_back(member == index_ ? input + index_ * part + chunk.begin * width
                                          : stage(member, static_cast<uint64_t>(step - 1)) + index_ * piece);
      }
      if (call.kind == CallKind::ReduceScatter) {
        combine(pieces, {output + chunk.begin * width}, chunk.count, call.type, call.op);
      } else {
        for (int member = 0; member < size_; ++member) {
          copy_bytes(output + member * part + chunk.begin * width, pieces[static_cast<size_t>(member)],
                     chunk.count * width);
        }
      }
    }
    if (step < chunks) barrier(guard);
  }
}

void ShmGroup::staged_all_gather(const Call& call, Guard& guard) {
  const int64_t part = call.part_bytes();
  const int64_t chunks = num_chunks(part, chunk_bytes_);
  const auto* input = static_cast<const std::byte*>(call.input);
  auto* output = static_cast<std::byte*>(call.output);
  for (int64_t step = 0; step < chunks + 1; ++step) {
    if (step < chunks) {
      const Chunk chunk = chunk_at(part, chunk_bytes_, step);
      copy_bytes(stage(index_, static_cast<uint64_t>(step)), input + chunk.begin, chunk.count);
    }
    if (step >= 1) {
      const Chunk chunk = chunk_at(part, chunk_bytes_, step - 1);
      for (int i = 0; i < size_; ++i) {
        const int member = (index_ + i) % size_;
        std::byte* to = output + member * part + chunk.begin;
        const std::byte* from = member == index_ ? input + chunk.begin : stage(member, static_cast<uint64_t>(step - 1));
        if (to != from) copy_bytes(to, from, chunk.count);
      }
    }
    if (step < chunks) barrier(guard);
  }
}

void ShmGroup::staged_broadcast(const Call& call, Guard& guard) {
  const int64_t part = call.part_bytes();
  const int64_t chunks = num_chunks(part, chunk_bytes_);
  auto* data = static_cast<std::byte*>(call.output);
  for (int64_t step = 0; step < chunks + 1; ++step) {
    if (step < chunks && index_ == call.root) {
      const Chunk chunk = chunk_at(part, chunk_bytes_, step);
      copy_bytes(stage(index_, static_cast<uint64_t>(step)), data + chunk.begin, chunk.count);
    }
    if (step >= 1 && index_ != call.root) {
      const Chunk chunk = chunk_at(part, chunk_bytes_, step - 1);
      copy_bytes(data + chunk.begin, stage(call.root, static_cast<uint64_t>(step - 1)), chunk.count);
    }
    if (step < chunks) barrier(guard);
  }
}

}  // namespace assay::comm
