#include "comm/shm_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/error.h"
#include "comm/reduce.h"

namespace assay::comm {

namespace {

constexpr int64_t kInline = 8 << 10;  // inputs up to this size travel in the slot
constexpr int64_t kStage = 1 << 20;   // room for a chunk
// Chunks stay in the second-level cache where members run at the same time; where they take turns on a core, a turn
// costs more than the cache gives.
constexpr int64_t kChunkSpinning = 256 << 10;
constexpr size_t kLine = 64;

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

// Where in shared memory a pointer points: a buffer of ours by its number, and the offset in this member's part.
struct ShmGroup::SharedAddress {
  int64_t buffer = 0;  // 0: nowhere
  int64_t offset = 0;
};

struct ShmGroup::Slot {
  CallKind kind;
  DType type;
  ReduceOp op;
  int root;
  int64_t count;
  SharedAddress input;
  SharedAddress output;
  alignas(kLine) std::byte bytes[kInline];
};

struct ShmGroup::Registry {
  struct Entry {
    std::byte* base = nullptr;  // of member 0
    int64_t stride = 0;
    int64_t bytes = 0;
  };
  std::mutex mutex;
  std::map<int64_t, Entry> entries;
  int64_t next = 1;
};

class ShmBuffer : public CommBuffer {
 public:
  ShmBuffer(std::shared_ptr<Segment> segment, std::byte* data, int64_t bytes,
            std::shared_ptr<ShmGroup::Registry> registry, int64_t number)
      : CommBuffer(bytes), segment_(std::move(segment)), data_(data), registry_(std::move(registry)), number_(number) {}
  ~ShmBuffer() override {
    const std::lock_guard lock(registry_->mutex);
    registry_->entries.erase(number_);
  }
  void* data() const override { return data_; }

 private:
  const std::shared_ptr<Segment> segment_;
  std::byte* const data_;
  const std::shared_ptr<ShmGroup::Registry> registry_;
  const int64_t number_;
};

Range share_of(int64_t count, size_t element_bytes, int index, int size) {
  const auto line = static_cast<int64_t>(kLine / element_bytes);
  const int64_t lines = (count + line - 1) / line;
  return {std::min(count, lines * index / size * line), std::min(count, lines * (index + 1) / size * line)};
}

// --- layout: counters, slots (two a member), staging areas (two a member), results (two), rings (one a pair)

ShmGroup::ShmGroup(std::shared_ptr<Segment> segment, int index, int size, bool spin)
    : segment_(std::move(segment)),
      index_(index),
      size_(size),
      spin_(spin),
      chunk_bytes_(spin ? kChunkSpinning : kStage),
      registry_(std::make_shared<Registry>()) {
  counters_ = reinterpret_cast<ShmCounters*>(segment_->data());
}

size_t ShmGroup::segment_size(int size) {
  const auto n = static_cast<size_t>(size);
  return rounded_up(sizeof(ShmCounters), kLine) + 2 * n * sizeof(Slot) + (2 * n + 2) * kStage + n * n * sizeof(ShmRing);
}

ShmGroup::Slot& ShmGroup::slot(int member) const {
  std::byte* slots = segment_->data() + rounded_up(sizeof(ShmCounters), kLine);
  return reinterpret_cast<Slot*>(slots)[2 * static_cast<size_t>(member) + (call_ & 1)];
}

std::byte* ShmGroup::stage(int member, uint64_t chunk) const {
  const auto n = static_cast<size_t>(size_);
  std::byte* stages = segment_->data() + rounded_up(sizeof(ShmCounters), kLine) + 2 * n * sizeof(Slot);
  return stages + (2 * static_cast<size_t>(member) + (chunk & 1)) * kStage;
}

std::byte* ShmGroup::result(uint64_t chunk) const { return stage(size_, chunk); }

ShmRing& ShmGroup::ring(int from, int to) const {
  std::byte* rings = stage(size_ + 1, 0);
  return reinterpret_cast<ShmRing*>(
      rings)[static_cast<size_t>(from) * static_cast<size_t>(size_) + static_cast<size_t>(to)];
}

void ShmGroup::barrier(Guard& guard) {
  guard.restart();
  const uint32_t old = generation_++;
  if (counters_->arrivals.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(size_)) {
    counters_->arrivals.store(0, std::memory_order_relaxed);
    publish(counters_->generation, generation_);
  } else {
    await_change(counters_->generation, old, spin_, guard);
  }
}

// --- buffers

int64_t ShmGroup::buffer_stride(int64_t bytes) {
  return static_cast<int64_t>(rounded_up(static_cast<size_t>(std::max<int64_t>(bytes, 1)), 4096));
}

std::shared_ptr<CommBuffer> ShmGroup::add_buffer(std::shared_ptr<Segment> segment, int64_t bytes) {
  const std::lock_guard lock(registry_->mutex);
  const int64_t number = registry_->next++;
  const int64_t stride = buffer_stride(bytes);
  std::byte* base = segment->data();
  registry_->entries[number] = {base, stride, bytes};
  return std::make_shared<ShmBuffer>(std::move(segment), base + index_ * stride, bytes, registry_, number);
}

ShmGroup::SharedAddress ShmGroup::shared_address_of(const void* data, int64_t bytes) const {
  const auto* address = static_cast<const std::byte*>(data);
  const std::lock_guard lock(registry_->mutex);
  for (const auto& [number, entry] : registry_->entries) {
    const std::byte* mine = entry.base + index_ * entry.stride;
    if (address >= mine && address + bytes <= mine + entry.bytes) return {number, address - mine};
  }
  return {};
}

std::vector<std::byte*> ShmGroup::members_memory(bool output) const {
  const auto address = [&](int member) { return output ? slot(member).output : slot(member).input; };
  const int64_t number = address(index_).buffer;
  const std::lock_guard lock(registry_->mutex);
  const auto entry = registry_->entries.find(number);
  if (entry == registry_->entries.end()) return {};
  std::vector<std::byte*> memory;
  for (int member = 0; member < size_; ++member) {
    if (address(member).buffer != number) return {};
    memory.push_back(entry->second.base + member * entry->second.stride + address(member).offset);
  }
  return memory;
}

// --- one call

namespace {

int64_t input_bytes(const Call& call, int size) {
  if (call.kind == CallKind::Allocate) return 0;  // agreed on, not moved
  const bool parts = call.kind == CallKind::ReduceScatter || call.kind == CallKind::AllToAll;
  return call.part_bytes() * (parts ? size : 1);
}

int64_t output_bytes(const Call& call, int size) {
  const bool parts = call.kind == CallKind::AllGather || call.kind == CallKind::AllToAll;
  return call.part_bytes() * (parts ? size : 1);
}

}  // namespace

void ShmGroup::publish_call(const Call& call) {
  Slot& mine = slot(index_);
  mine.kind = call.kind;
  mine.type = call.type;
  mine.op = call.op;
  mine.root = call.root;
  mine.count = call.count;
  const int64_t bytes = input_bytes(call, size_);
  if (bytes <= kInline) {
    if (bytes > 0) std::memcpy(mine.bytes, call.input, static_cast<size_t>(bytes));
    return;
  }
  mine.input = shared_address_of(call.input, bytes);
  mine.output = call.output == call.input ? mine.input : shared_address_of(call.output, output_bytes(call, size_));
}

// All members see the same slots, so all of them find the same.
void ShmGroup::check_same(const Call& call, Guard& guard) const {
  for (int member = 0; member < size_; ++member) {
    const Slot& other = slot(member);
    if (other.kind == call.kind && other.type == call.type && other.op == call.op && other.root == call.root &&
        other.count == call.count) {
      continue;
    }
    const Activity activity = guard.describe();
    const std::string problem = fmt::format(
        "the members of {} disagree: member {} calls {} of {} elements, member {} calls {} of {} elements",
        activity.group_name, index_, kind_text(call.kind), call.count, member, kind_text(other.kind), other.count);
    guard.control().fail(problem);
    throw CommunicationError(call_text(activity) + ": " + problem);
  }
}

void ShmGroup::run(const Call& call, Guard& guard) {
  if (call.kind == CallKind::Barrier) return barrier(guard);
  ++call_;
  publish_call(call);
  barrier(guard);
  check_same(call, guard);
  if (call.count == 0 || call.kind == CallKind::Allocate) return;
  if (input_bytes(call, size_) <= kInline) return run_small(call);
  if (!run_direct(call, guard)) run_staged(call, guard);
}

void ShmGroup::run_small(const Call& call) const {
  const int64_t part = call.part_bytes();
  const bool scattered = call.kind == CallKind::ReduceScatter || call.kind == CallKind::AllToAll;
  std::vector<const void*> inputs;
  for (int member = 0; member < size_; ++member) inputs.push_back(slot(member).bytes + (scattered ? index_ * part : 0));
  auto* output = static_cast<std::byte*>(call.output);
  if (call.kind == CallKind::AllReduce || call.kind == CallKind::ReduceScatter) {
    return combine(inputs, {output}, call.count, call.type, call.op);
  }
  if (call.kind == CallKind::Broadcast) {
    if (index_ != call.root) std::memcpy(output, inputs[static_cast<size_t>(call.root)], static_cast<size_t>(part));
    return;
  }
  for (int member = 0; member < size_; ++member) {
    std::memcpy(output + member * part, inputs[static_cast<size_t>(member)], static_cast<size_t>(part));
  }
}

}  // namespace assay::comm
