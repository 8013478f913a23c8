// The Communicator of a group of several processes: order of calls, futures, times, and the watchdog's notes. The
// transport is a Transport.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/core.h"
#include "comm/messages.h"
#include "comm/pending.h"
#include "comm/transport.h"

namespace assay::comm {

class GroupCommunicator : public Communicator {
 public:
  GroupCommunicator(std::shared_ptr<CommCore> core, std::vector<int> ranks, int index, std::string name,
                    const std::string& key);
  ~GroupCommunicator() override;

  int rank() const override { return index_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& world_ranks() const override { return ranks_; }
  const std::string& name() const override { return name_; }
  std::string transport() const override { return transport_->transport(); }

  Pending start_all_reduce(void* data, int64_t count, DType type, ReduceOp op) override;
  Pending start_reduce_scatter(const void* input, void* output, int64_t count, DType type, ReduceOp op) override;
  Pending start_all_gather(const void* input, void* output, int64_t count, DType type) override;
  Pending start_broadcast(void* data, int64_t count, DType type, int root) override;
  Pending start_all_to_all(const void* input, void* output, int64_t count, DType type) override;
  Pending start_send(const void* data, int64_t bytes, int to, int tag) override;
  Pending start_receive(void* data, int64_t bytes, int from, int tag) override;
  Pending start_barrier() override;

  void all_reduce(void* data, int64_t count, DType type, ReduceOp op) override;
  void reduce_scatter(const void* input, void* output, int64_t count, DType type, ReduceOp op) override;
  void all_gather(const void* input, void* output, int64_t count, DType type) override;
  void broadcast(void* data, int64_t count, DType type, int root) override;
  void all_to_all(const void* input, void* output, int64_t count, DType type) override;
  void barrier() override;

  std::shared_ptr<CommBuffer> allocate(int64_t bytes) override;
  void set_purpose(const std::string& purpose) override;
  double seconds_waited() const override { return static_cast<double>(clock_->waited_ns.load()) * 1e-9; }
  int64_t bytes_moved() const override { return bytes_moved_.load(); }

 private:
  using Purpose = std::shared_ptr<const std::string>;
  void check_call(const Call& call) const;
  void run(const Call& call, const Purpose& purpose);
  Pending start(const Call& call);  // on the queue
  void perform(const Call& call);   // here and now, unless others are before it
  void check_peer(int peer, int64_t bytes) const;
  Messenger& messenger();

  const std::shared_ptr<CommCore> core_;
  const std::vector<int> ranks_;
  const int index_;
  const std::string name_;
  const std::shared_ptr<WaitClock> clock_ = std::make_shared<WaitClock>();
  std::atomic<int64_t> bytes_moved_{0};
  std::atomic<bool> stop_{false};
  Purpose purpose_;
  std::shared_ptr<ActivityBoard> board_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Messenger> messenger_;
  TaskQueue queue_;
};

}  // namespace assay::comm
