// Collectives on memory that all members see: nothing is copied that need not be.
#include <algorithm>
#include <cstring>

#include "comm/reduce.h"
#include "comm/shm_group.h"

namespace assay::comm {

namespace {

constexpr int64_t kItemBytes = 64 << 10;

std::vector<const void*> at_offset(const std::vector<std::byte*>& memory, int64_t offset) {
  std::vector<const void*> moved;
  for (const std::byte* data : memory) moved.push_back(data + offset);
  return moved;
}

void copy_unless_same(std::byte* to, const std::byte* from, int64_t bytes) {
  if (to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

bool ShmGroup::run_direct(const Call& call, Guard& guard) {
  const std::vector<std::byte*> inputs = members_memory(false);
  if (!inputs.empty() && call.kind == CallKind::AllReduce) {
    direct_all_reduce(call, inputs, guard);
    return true;
  }
  if (!inputs.empty()) {
    direct_copies(call, inputs);
  } else if (call.kind == CallKind::AllGather) {
    const std::vector<std::byte*> outputs = members_memory(true);
    if (outputs.empty()) return false;
    for (int i = 0; i < size_; ++i) {
      std::byte* to = outputs[static_cast<size_t>((index_ + i) % size_)] + index_ * call.part_bytes();
      copy_unless_same(to, static_cast<const std::byte*>(call.input), call.part_bytes());
    }
  } else {
    return false;
  }
  barrier(guard);  // nobody touches its memory while another works on it
  return true;
}

// The work is cut into items that members take as they come: one that has no core at the moment keeps nobody waiting.
// Everybody reaches for an item once in vain, and the next call begins after that, so where its counters begin is
// known.
void ShmGroup::direct_all_reduce(const Call& call, const std::vector<std::byte*>& memory, Guard& guard) {
  const auto width = static_cast<int64_t>(size_of(call.type));
  const int64_t per_item = kItemBytes / width;
  const auto num_items = static_cast<uint64_t>((call.count + per_item - 1) / per_item);
  std::vector<const void*> inputs(memory.size());
  std::vector<void*> outputs(memory.size());
  while (true) {
    const uint64_t item = counters_->next_item.fetch_add(1, std::memory_order_relaxed) - first_item_;
    if (item >= num_items) break;
    const int64_t begin = static_cast<int64_t>(item) * per_item;
    for (size_t i = 0; i < memory.size(); ++i) inputs[i] = outputs[i] = memory[i] + begin * width;
    combine(inputs, outputs, std::min(per_item, call.count - begin), call.type, call.op);
    if (counters_->items_done.fetch_add(1, std::memory_order_acq_rel) + 1 == items_done_ + num_items) {
      publish(counters_->finished, num_finished_ + 1);
    }
  }
  first_item_ += num_items + static_cast<uint64_t>(size_);
  items_done_ += num_items;
  guard.restart();
  await_change(counters_->finished, num_finished_, spin_, guard);
  ++num_finished_;
}

void ShmGroup::direct_copies(const Call& call, const std::vector<std::byte*>& inputs) const {
  const int64_t part = call.part_bytes();
  auto* output = static_cast<std::byte*>(call.output);
  if (call.kind == CallKind::ReduceScatter) {
    combine(at_offset(inputs, index_ * part), {output}, call.count, call.type, call.op);
  } else if (call.kind == CallKind::Broadcast) {
    copy_unless_same(output, inputs[static_cast<size_t>(call.root)], part);
  } else {
    const int64_t offset = call.kind == CallKind::AllToAll ? index_ * part : 0;
    for (int i = 0; i < size_; ++i) {  // everybody begins with another member
      const int member = (index_ + i) % size_;
      copy_unless_same(output + member * part, inputs[static_cast<size_t>(member)] + offset, part);
    }
  }
}

}  // namespace assay::comm
