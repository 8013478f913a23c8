// Collectives on memory that all members see: nothing is copied that need not be.
#include <algorithm>
#include <cstring>

#include "comm/reduce.h"
#include "comm/shm_group.h"

namespace assay {

namespace {

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
  if (!inputs.empty()) {
    direct_inputs(call, inputs);
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

void ShmGroup::direct_inputs(const Call& call, const std::vector<std::byte*>& inputs) const {
  const int64_t part = call.part_bytes();
  auto* output = static_cast<std::byte*>(call.output);
  if (call.kind == CallKind::AllReduce) {
    const Range mine = share_of(call.count, size_of(call.type), index_, size_);
    const int64_t offset = mine.begin * static_cast<int64_t>(size_of(call.type));
    std::vector<void*> outputs;
    for (std::byte* memory : inputs) outputs.push_back(memory + offset);
    combine(at_offset(inputs, offset), outputs, mine.end - mine.begin, call.type, call.op);
  } else if (call.kind == CallKind::ReduceScatter) {
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

}  // namespace assay
