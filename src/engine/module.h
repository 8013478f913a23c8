// A model as the engine sees it: FleetX's hooks. The engine calls them in a fixed order (docs/engine.md) and knows
// nothing else of the model; a module knows nothing of loops, files and records.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/optimizer.h"
#include "nn/tensor_parallel.h"

namespace assay {

class EngineObserver;
struct EngineOptions;

using TensorList = std::vector<torch::Tensor>;

// How a parameter or buffer is spread over tensor-parallel processes: each has a part of one dimension. A tensor that
// no split names is the same everywhere.
struct WeightSplit {
  std::string name;
  int64_t dim = 0;
  int64_t groups = 1;  // the dimension is so many things side by side (query, key, value), and each is split
};

// What a module trains: a torch module with one forward function for training, evaluation and export.
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

// prediction, label -> mean loss over the batch.
using LossFunction = std::function<torch::Tensor(const torch::Tensor&, const torch::Tensor&)>;

// One input of an exported model. Extent -1 is free: the first is the batch, others are for example a sequence. Free
// extents at the same place are equal in all inputs.
struct InputSpec {
  std::string name;
  torch::ScalarType dtype = torch::kFloat;
  std::vector<int64_t> shape;
  int64_t num_values = 1;  // of integers: 0 .. num_values - 1 may occur, such as the ids of a vocabulary
};

// What training_step_end gets, every logging_freq steps. Means are over the steps since the last log.
struct TrainLog {
  int64_t epoch = 0;  // 0-based
  int64_t num_epochs = 0;
  int64_t batch = 0;  // 1-based within the epoch
  int64_t num_batches = 0;
  int64_t global_step = 0;  // updates done
  double loss = 0;          // mean
  double learning_rate = 0;
  double batch_cost_s = 0;  // mean wall time a step
  double samples_per_s = 0;
  double units_per_s = 0;                    // the same in Module::sample_unit()s
  std::optional<double> mfu;                 // nullopt: the model's FLOPS or the device's peak are unknown
  std::optional<int64_t> peak_memory_bytes;  // largest resident size so far
  double data_s = 0;                         // mean time by phase
  double forward_s = 0;
  double backward_s = 0;
  double optimizer_s = 0;
  std::optional<double> comm_s;  // of these, waiting for other processes; nullopt: there are none
  double loss_scale = 1;
  int64_t found_inf = 0;  // steps skipped since the last log, since a gradient or the loss was not finite
};

struct EvalLog {
  const char* stage = "eval";  // "eval" or "test"
  int64_t epoch = 0;
  int64_t batch = 0;  // 1-based
  int64_t num_batches = 0;
  double loss = 0;  // of this batch
  double batch_cost_s = 0;
};

// What a validation or test step measured on one batch. Sums, so that batches and ranks add up; a metric that no sums
// give, such as the area under a curve, gets one number a sample instead.
struct EvalStep {
  torch::Tensor loss;    // mean over the batch
  torch::Tensor output;  // what predict() collects
  int64_t num_samples = 0;
  std::map<std::string, double> sums = {};           // for example "correct"
  std::map<std::string, torch::Tensor> values = {};  // [num_samples] each
};

struct EvalSums {
  double loss = 0;  // sum over samples
  int64_t num_samples = 0;
  std::map<std::string, double> sums = {};
  std::map<std::string, torch::Tensor> values = {};  // of all batches, one after the other
};

// Adds up the steps of one evaluation.
class EvalCollector {
 public:
  void add(const EvalStep& step);
  EvalSums sums() const;

 private:
  EvalSums sums_;
  std::map<std::string, TensorList> values_;
};
using MetricValues = std::map<std::string, double>;
using TensorsByName = std::map<std::string, torch::Tensor>;

// Floating-point operations of training for each multiply-add of the forward pass: a multiplication and an addition,
// three times, since the backward pass computes two products for each one of the forward pass.
inline constexpr double kTrainFlops = 6;

// Not thread-safe: the engine calls every hook from one thread.
class Module {
 public:
  virtual ~Module() = default;

  // --- what a model must say
  virtual std::shared_ptr<Network> get_model() = 0;  // called once, by init()
  virtual LossFunction get_loss_fn() = 0;            // called once, by init()
  virtual std::vector<InputSpec> input_spec() const = 0;
  virtual std::string sample_unit() const { return "samples"; }  // "images", "tokens"
  virtual double units_per_sample() const { return 1; }          // tokens of a sequence
  // Floating-point operations of training on one sample: kTrainFlops * multiply-adds. nullopt: unknown, and no MFU.
  virtual std::optional<double> flops_per_sample() const { return std::nullopt; }

  // --- what it may change
  // Looks at the options of the run before anything is made from them. Throws ConfigError for those it cannot work
  // with.
  virtual void process_configs(const EngineOptions& /*options*/) {}
  // Handlers of events that the model brings along; they must live as long as the module (engine/event_handler.h).
  virtual std::vector<EngineObserver*> event_handlers() { return {}; }
  virtual Batch pretreating_batch(Batch batch) { return batch; }
  virtual torch::Tensor forward(const TensorList& inputs) { return model().forward(inputs); }
  // The last tensor of a batch is the label, the others are inputs.
  virtual torch::Tensor training_step(const Batch& batch);
  // The mean loss from the stream behind the last segment of the network: what training_step() does there.
  virtual torch::Tensor training_loss(const TensorList& stream, const Batch& batch);
  // What the mean loss of a batch is a mean over: how several batches, or several processes, make one mean. nullopt:
  // its samples.
  virtual std::optional<double> loss_weight(const Batch& /*batch*/) const { return std::nullopt; }
  virtual void training_step_end(const TrainLog& log);   // prints FleetX's line
  virtual EvalStep validation_step(const Batch& batch);  // measure_output() of forward()
  // The same from the stream behind the last segment.
  virtual EvalStep measure_stream(const TensorList& stream, const Batch& batch);
  // Loss and sums that an output gives on its batch, whoever computed it: the network, or its export.
  virtual EvalStep measure_output(const torch::Tensor& output, const Batch& batch);
  virtual void validation_step_end(const EvalLog& log);
  virtual EvalStep test_step(const Batch& batch) { return validation_step(batch); }
  virtual void test_step_end(const EvalLog& log) { validation_step_end(log); }
  virtual void backward(const torch::Tensor& loss) { loss.backward(); }
  virtual void training_epoch_end(int64_t /*epoch*/, double /*seconds*/) {}
  // Turns sums into metrics. Always has "loss"; a classifier adds "accuracy".
  virtual MetricValues validation_epoch_end(int64_t epoch, const EvalSums& sums);
  // The tensors of a published file of weights, which may have other names than the network and more tensors: as the
  // network names them. Our own files come through unchanged.
  virtual TensorsByName from_published(TensorsByName tensors) const { return tensors; }
  virtual std::unique_ptr<Optimizer> configure_optimizers(const Optimizer::Options& options);

  // Builds network and loss; call once, after the random generator was seeded.
  void init();
  Network& model() const;
  const std::shared_ptr<Network>& network() const { return model_; }
  // What the optimizer updates: the network's trainable parameters, or what a strategy has set instead.
  ParameterSet trained_parameters() const;
  void set_trained_parameters(ParameterSet parameters) { trained_parameters_ = std::move(parameters); }
  // Trains another network from now on: a vendor's convert_model.
  void replace_network(std::shared_ptr<Network> network) { model_ = std::move(network); }
  const LossFunction& loss_fn() const { return loss_fn_; }

 private:
  std::shared_ptr<Network> model_;
  LossFunction loss_fn_;
  std::optional<ParameterSet> trained_parameters_;
};

// The parts of a batch by the convention above.
TensorList inputs_of(const Batch& batch);
const torch::Tensor& label_of(const Batch& batch);

}  // namespace assay
