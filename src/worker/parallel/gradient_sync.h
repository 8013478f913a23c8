// Gradients of several processes made one, while the backward pass still runs: parameters stand in buckets, and a
// bucket is reduced as soon as all its gradients are there. What is done with a bucket is a derived class's business.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <set>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "engine/optimizer/optimizer.h"
#include "parallel/flat_layout.h"

namespace assay {

struct SyncedParameters {
  std::vector<NamedTensors> groups;  // dense ones, a bucket each, in the order in which gradients become ready
  std::vector<NamedTensors> late;    // the same of those whose gradients are complete only at the end of a step
  NamedTensors sparse;               // their gradients are some rows of a table
};

class GradientSync {
 public:
  struct Groups {
    comm::Communicator& replicas;  // all processes with other samples
    comm::Communicator& tensor;
    std::set<std::string> summed_over_tensor;  // parameters of which each tensor-parallel process has a part of the sum
    bool find_unused = false;
    bool reduces_every_part = false;  // after every micro-batch, not only after the last
  };
  GradientSync(const SyncedParameters& parameters, const Groups& groups, int64_t num_parts);
  virtual ~GradientSync() = default;
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;

  // What the optimizer of this process updates.
  virtual ParameterSet trained() const = 0;

  virtual void begin_step();
  // Before the forward pass of a micro-batch whose gradients are reduced as they come.
  void arm();
  // At the end of a step: returns when all gradients are complete. Throws ConfigError when a parameter got none on this
  // process and find_unused is off.
  void finish();
  virtual void after_update() {}

 protected:
  struct Bucket {
    FlatLayout layout;
    torch::Tensor gradients;  // flat; undefined while there is no memory for them
    std::vector<bool> ready;  // of this micro-batch
    std::vector<bool> used;   // in this step
    int64_t num_ready = 0;
    bool started = false;
    bool completed = false;
    comm::Pending pending = {};
  };
  std::vector<Bucket>& buckets() { return buckets_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  const NamedTensors& sparse() const { return sparse_; }

  virtual void prepare_bucket(size_t /*index*/) {}  // before the first gradient of a micro-batch is put in
  virtual void start(size_t index) = 0;             // all gradients are in: begins to reduce them
  virtual void complete(size_t index) = 0;          // after the pending is done
  virtual void finish_bucket(size_t index) = 0;     // at the end of the step: gives gradients to the optimizer
  virtual void drop_gradient(size_t index, size_t item) = 0;  // nobody used this parameter
  // How many buckets may be started and not complete: each has memory. A fixed number, not "those that happen to be
  // done", since every process asks for memory in the same order.
  virtual size_t max_in_flight() const { return SIZE_MAX; }

 private:
  void take(size_t index, size_t item);
  void start_in_order();
  void complete_bucket(size_t index);
  void settle(bool takes_rest);
  void drop_unused();
  void exchange_sparse(torch::Tensor parameter);

  Groups groups_;
  std::vector<Bucket> buckets_;  // the late ones last
  size_t num_early_ = 0;
  NamedTensors sparse_;
  size_t next_to_start_ = 0;
  std::vector<std::shared_ptr<torch::autograd::Node>> armed_;  // accumulators of gradients that call take()
};

// Every process has all weights and all of the optimizer: gradients are added up, and that is all.
class ReplicatedGradients final : public GradientSync {
 public:
  // `reduces` false: a fault on purpose, for tests.
  ReplicatedGradients(const SyncedParameters& parameters, const Groups& groups, bool reduces);
  ParameterSet trained() const override;

 private:
  void start(size_t index) override;
  void complete(size_t /*index*/) override {}
  void finish_bucket(size_t index) override;
  void drop_gradient(size_t index, size_t item) override;

  comm::Communicator& group_;
  bool reduces_;
  std::vector<std::shared_ptr<comm::CommBuffer>> memory_;
};

// A flat tensor of a layout in a buffer of communication.
torch::Tensor flat_in(const std::shared_ptr<comm::CommBuffer>& buffer, const FlatLayout& layout);

}  // namespace assay
