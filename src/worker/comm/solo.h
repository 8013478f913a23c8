// The Communicator of a group of one: it copies, and that is all.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace assay::comm {

class SoloCommunicator : public Communicator {
 public:
  SoloCommunicator(int world_rank, std::string name) : ranks_{world_rank}, name_(std::move(name)) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::vector<int>& world_ranks() const override { return ranks_; }
  const std::string& name() const override { return name_; }
  std::string transport() const override { return "none"; }
  Pending start_all_reduce(void* data, int64_t count, DType type, ReduceOp op) override;
  Pending start_reduce_scatter(const void* input, void* output, int64_t count, DType type, ReduceOp op) override;
  Pending start_all_gather(const void* input, void* output, int64_t count, DType type) override;
  Pending start_broadcast(void* data, int64_t count, DType type, int root) override;
  Pending start_all_to_all(const void* input, void* output, int64_t count, DType type) override;
  Pending start_send(const void* data, int64_t bytes, int to, int tag) override;
  Pending start_receive(void* data, int64_t bytes, int from, int tag) override;
  Pending start_barrier() override { return {}; }
  std::shared_ptr<CommBuffer> allocate(int64_t bytes) override;
  void set_purpose(const std::string&) override {}
  double seconds_waited() const override { return 0; }
  int64_t bytes_moved() const override { return bytes_moved_; }

 private:
  Pending copy(const void* input, void* output, int64_t count, DType type);
  const std::vector<int> ranks_;
  const std::string name_;
  int64_t bytes_moved_ = 0;
};

}  // namespace assay::comm
