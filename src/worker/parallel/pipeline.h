// A pipeline: the chunks of the network that this stage has, computed in the order of pipeline_plan.h, with activations
// going to the next chunk and gradients to the one before.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "comm/communicator.h"
#include "engine/strategy/micro_batch.h"

namespace assay {

class Pipeline final : public MicroBatchSchedule {
 public:
  struct Options {
    int64_t virtual_stages = 1;
    std::vector<int64_t> edges;  // divide_segments() of the whole network
  };
  Pipeline(comm::Communicator& stages, const Options& options) : stages_(stages), options_(options) {}

  bool has_last_chunk() const { return stages_.rank() == stages_.size() - 1; }
  // One step; the sum of loss * share on the last stage, 0 on the others. Gradients are added to the parameters'.
  double run(const std::vector<MicroBatch>& parts, StepTools& tools) override;
  // One batch without gradients: the stream behind the last segment on the last stage, nothing on the others.
  TensorList run_forward(Module& module, const Batch& batch);

 private:
  struct Kept {  // of a forward pass until its backward pass
    TensorList inputs, outputs;
    torch::Tensor loss;
  };
  int64_t num_chunks() const { return stages_.size() * options_.virtual_stages; }
  int64_t global_chunk(int64_t local) const { return local * stages_.size() + stages_.rank(); }
  TensorList run_chunk(Module& module, int64_t chunk, TensorList stream, const Batch& batch) const;
  Kept forward(int64_t chunk, const MicroBatch& part, StepTools& tools);
  void backward(int64_t chunk, const Kept& kept, const MicroBatch& part, StepTools& tools);
  // Tensors to or from the process that has a chunk; `tag` keeps the streams of different edges apart.
  void send(const TensorList& tensors, int64_t to_chunk, int64_t tag);
  TensorList receive(int64_t from_chunk, int64_t tag);
  void forget_sent(bool all);

  comm::Communicator& stages_;
  Options options_;
  struct Sent {
    torch::Tensor tensor;  // must stay until it is gone
    comm::Pending pending;
  };
  std::deque<Sent> sent_;
};

}  // namespace assay
