// What a module trains: a torch module that says where it can be cut. Knows nothing of losses, loops and processes.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nn/tensor_parallel.h"

namespace assay {

using TensorList = std::vector<torch::Tensor>;

// How a parameter or buffer is spread over tensor-parallel processes: each has a part of one dimension. A tensor that
// no split names is the same everywhere.
struct WeightSplit {
  std::string name;
  int64_t dim = 0;
  int64_t groups = 1;  // the dimension is so many things side by side (query, key, value), and each is split
};

// A torch module with one forward function for training, evaluation and export.
//
// A network that can be cut into a row of segments implements run_segment() and the functions beside it instead of
// forward(). A stream of tensors goes from one segment to the next; the inputs of the batch are there for all of them.
class Network : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const TensorList& inputs) { return output(run(inputs)); }

  // --- segments, for pipelines and for parameters that are only gathered where they are needed
  virtual int64_t num_segments() const { return 1; }
  // The stream behind a segment. It is empty before the first one.
  virtual TensorList run_segment(int64_t index, const TensorList& stream, const TensorList& inputs);
  // What forward() returns, from the stream behind the last segment.
  virtual torch::Tensor output(const TensorList& stream) { return stream.at(0); }
  // The parameters that a segment reads, and of the last one also those that output() and the loss read.
  virtual std::vector<std::string> segment_parameters(int64_t index) const;

  // --- tensor parallelism
  virtual std::vector<WeightSplit> weight_splits() const { return {}; }
  // Parameters that all tensor-parallel processes use for all of a sequence, even when sequences are split.
  virtual std::vector<std::string> whole_sequence_parameters() const { return {}; }
  // Throws ConfigError when the sizes of the network do not divide. Called before the weights are cut.
  virtual void set_tensor_parallel(const TensorParallel& tensor_parallel) { tensor_parallel_ = tensor_parallel; }
  const TensorParallel& tensor_parallel() const { return tensor_parallel_; }

  // Parameters whose gradients are sparse: some rows of a table.
  virtual std::vector<std::string> sparse_parameters() const { return {}; }
  // The rows of each of them that forward() reads for these inputs, int64; repeated ones may be there several times.
  // Empty: the network does not say, and cannot be trained with parameter servers.
  virtual TensorList sparse_rows(const TensorList& /*inputs*/) const { return {}; }

  // All segments one after the other, and one of them, by the runner, if there is one, instead of run_segment().
  TensorList run(const TensorList& inputs);
  TensorList run_one(int64_t index, const TensorList& stream, const TensorList& inputs);
  using SegmentRunner = std::function<TensorList(int64_t index, const TensorList& stream, const TensorList& inputs)>;
  void run_segments_by(SegmentRunner runner) { runner_ = std::move(runner); }

 private:
  TensorParallel tensor_parallel_;
  SegmentRunner runner_;
};

}  // namespace assay
