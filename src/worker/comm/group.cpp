#include "comm/group.h"

#include <fmt/format.h>

#include "base/error.h"

namespace assay::comm {

GroupCommunicator::GroupCommunicator(std::shared_ptr<CommCore> core, std::vector<int> ranks, int index,
                                     std::string name, const std::string& key)
    : core_(std::move(core)), ranks_(std::move(ranks)), index_(index), name_(std::move(name)) {
  const uint64_t number = core_->control().number_of(key);
  board_ = std::make_shared<ActivityBoard>(number, name_, ranks_);
  core_->add_board(board_);
  Guard guard(core_->control(), stop_, [this] { return board_->now(); });
  transport_ = core_->make_transport(ranks_, index_, number, guard);
  board_->end();
}

GroupCommunicator::~GroupCommunicator() {
  stop_.store(true);
  queue_.stop();
  messenger_.reset();
}

void GroupCommunicator::check_call(const Call& call) const {
  ASSAY_CHECK(call.count >= 0, "a collective of a negative number of elements");
  ASSAY_CHECK(call.root >= 0 && call.root < size(), fmt::format("no member {} in {}", call.root, name_));
}

void GroupCommunicator::run(const Call& call, const Purpose& purpose) {
  board_->begin(kind_text(call.kind), call.part_bytes(), purpose);
  Guard guard(core_->control(), stop_, [this] { return board_->now(); });
  try {
    guard.check();
    transport_->run(call, guard);
  } catch (...) {
    board_->end();
    throw;
  }
  board_->end();
}

Pending GroupCommunicator::start(const Call& call) {
  check_call(call);
  bytes_moved_ += call.part_bytes();
  return Pending(queue_.add([this, call, purpose = purpose_] { run(call, purpose); }, clock_));
}

void GroupCommunicator::perform(const Call& call) {
  if (!queue_.idle()) return start(call).wait();
  check_call(call);
  bytes_moved_ += call.part_bytes();
  const auto begin = std::chrono::steady_clock::now();
  try {
    run(call, purpose_);
  } catch (...) {
    clock_->add(std::chrono::steady_clock::now() - begin);
    throw;
  }
  clock_->add(std::chrono::steady_clock::now() - begin);
}

namespace {

Call all_reduce_call(void* data, int64_t count, DType type, ReduceOp op) {
  return {.kind = CallKind::AllReduce, .input = data, .output = data, .count = count, .type = type, .op = op};
}
Call reduce_scatter_call(const void* input, void* output, int64_t count, DType type, ReduceOp op) {
  return {.kind = CallKind::ReduceScatter, .input = input, .output = output, .count = count, .type = type, .op = op};
}
Call all_gather_call(const void* input, void* output, int64_t count, DType type) {
  return {.kind = CallKind::AllGather, .input = input, .output = output, .count = count, .type = type};
}
Call broadcast_call(void* data, int64_t count, DType type, int root) {
  return {.kind = CallKind::Broadcast, .input = data, .output = data, .count = count, .type = type, .root = root};
}
Call all_to_all_call(const void* input, void* output, int64_t count, DType type) {
  return {.kind = CallKind::AllToAll, .input = input, .output = output, .count = count, .type = type};
}

}  // namespace

Pending GroupCommunicator::start_all_reduce(void* data, int64_t count, DType type, ReduceOp op) {
  return start(all_reduce_call(data, count, type, op));
}
Pending GroupCommunicator::start_reduce_scatter(const void* input, void* output, int64_t count, DType type,
                                                ReduceOp op) {
  return start(reduce_scatter_call(input, output, count, type, op));
}
Pending GroupCommunicator::start_all_gather(const void* input, void* output, int64_t count, DType type) {
  return start(all_gather_call(input, output, count, type));
}
Pending GroupCommunicator::start_broadcast(void* data, int64_t count, DType type, int root) {
  return start(broadcast_call(data, count, type, root));
}
Pending GroupCommunicator::start_all_to_all(const void* input, void* output, int64_t count, DType type) {
  return start(all_to_all_call(input, output, count, type));
}
Pending GroupCommunicator::start_barrier() { return start({.kind = CallKind::Barrier}); }

void GroupCommunicator::all_reduce(void* data, int64_t count, DType type, ReduceOp op) {
  perform(all_reduce_call(data, count, type, op));
}
void GroupCommunicator::reduce_scatter(const void* input, void* output, int64_t count, DType type, ReduceOp op) {
  perform(reduce_scatter_call(input, output, count, type, op));
}
void GroupCommunicator::all_gather(const void* input, void* output, int64_t count, DType type) {
  perform(all_gather_call(input, output, count, type));
}
void GroupCommunicator::broadcast(void* data, int64_t count, DType type, int root) {
  perform(broadcast_call(data, count, type, root));
}
void GroupCommunicator::all_to_all(const void* input, void* output, int64_t count, DType type) {
  perform(all_to_all_call(input, output, count, type));
}
void GroupCommunicator::barrier() { perform({.kind = CallKind::Barrier}); }

Messenger& GroupCommunicator::messenger() {
  if (messenger_) return *messenger_;
  Activity group = board_->now();
  group.purpose.clear();
  group.ranks.insert(group.ranks.begin(), core_->options().rank);
  messenger_ =
      std::make_unique<Messenger>(Messenger::Setup{.control = &core_->control(),
                                                   .stop = &stop_,
                                                   .open = [this](int peer) { return transport_->stream(peer); },
                                                   .group = group,
                                                   .clock = clock_});
  return *messenger_;
}

void GroupCommunicator::check_peer(int peer, int64_t bytes) const {
  ASSAY_CHECK(peer >= 0 && peer < size() && peer != index_, fmt::format("no other member {} in {}", peer, name_));
  ASSAY_CHECK(bytes >= 0, "a message of a negative size");
  core_->control().health().check();
}

Pending GroupCommunicator::start_send(const void* data, int64_t bytes, int to, int tag) {
  check_peer(to, bytes);
  bytes_moved_ += bytes;
  return messenger().send(data, bytes, to, tag);
}

Pending GroupCommunicator::start_receive(void* data, int64_t bytes, int from, int tag) {
  check_peer(from, bytes);
  bytes_moved_ += bytes;
  return messenger().receive(data, bytes, from, tag);
}

// In the order of other calls, so it goes through the queue when there is one.
std::shared_ptr<CommBuffer> GroupCommunicator::allocate(int64_t bytes) {
  ASSAY_CHECK(bytes >= 0, "memory of a negative size");
  std::shared_ptr<CommBuffer> buffer;
  const auto task = [&, purpose = purpose_] {
    board_->begin(kind_text(CallKind::Allocate), bytes, purpose);
    Guard guard(core_->control(), stop_, [this] { return board_->now(); });
    guard.check();
    buffer = transport_->allocate(bytes, guard);
    board_->end();
  };
  if (queue_.idle()) {
    task();
  } else {
    queue_.add(task, clock_)->wait();
  }
  return buffer;
}

void GroupCommunicator::set_purpose(const std::string& purpose) {
  if (!purpose_ || *purpose_ != purpose) purpose_ = std::make_shared<const std::string>(purpose);
}

}  // namespace assay::comm
