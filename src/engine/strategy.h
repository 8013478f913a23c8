// How the processes of a job share one training run, as the engine sees it: who computes which part of a batch, when
// gradients are complete, where the whole of a tensor is that is spread over processes. This class is the strategy of
// one process; those of several are in parallel/.
//
// Every process of a job makes the same calls in the same order.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/module.h"
#include "engine/operator_precision.h"
#include "engine/options.h"

namespace assay {

// A part of a step that is computed at once.
struct MicroBatch {
  Batch batch;
  double share = 1;  // of its mean loss in the loss of the step, over all processes
};

// What a strategy that orders the parts of a step itself needs of the engine.
struct StepTools {
  Module& module;
  std::function<std::unique_ptr<AutocastScope>()> autocast;
  std::function<void(const torch::Tensor& loss, double share)> backward;  // of loss * share * loss scale
  double& forward_s;                                                      // time spent, to be added to
  double& backward_s;
};

// What all processes agree on at the end of a step.
struct StepAgreement {
  double loss = 0;    // of the step, over all processes; not finite when it is so anywhere
  bool stop = false;  // a process was asked to stop
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string describe() const { return "one process"; }
  virtual bool alone() const { return true; }
  virtual int world_size() const { return 1; }
  virtual bool is_writer() const { return true; }  // writes checkpoints, weights and the result
  // Processes that compute different samples of a batch, and which of them this one is.
  virtual int num_replicas() const { return 1; }
  virtual int replica() const { return 0; }

  // Once, before the optimizer is made: places the weights and says what the optimizer updates
  // (Module::set_trained_parameters). Throws ConfigError for what the model or the options cannot do.
  virtual void prepare(Module& /*module*/, const EngineOptions& /*options*/) {}

  // Who updates the weights, where the processes do not do it themselves; null: the adapter's optimizer.
  virtual std::unique_ptr<Optimizer> create_optimizer(const Optimizer::Options& /*options*/) { return nullptr; }
  // Level O2's weights, where not every process has all of them to make copies of; null: the adapter's.
  virtual std::unique_ptr<LowPrecisionWeights> create_low_weights(torch::ScalarType /*dtype*/) { return nullptr; }

  // --- a step
  virtual double sum_over_replicas(double own) { return own; }
  virtual void begin_step(int64_t /*step*/) {}  // its number, for messages
  // Before level O2 makes copies of the weights: those that these parts read are brought up to date.
  virtual void bring_weights(const std::vector<MicroBatch>& /*parts*/) {}
  virtual void before_micro_batch(bool /*is_last*/) {}
  virtual bool orders_micro_batches() const { return false; }
  // All micro-batches, forward and backward; the sum of loss * share that this process has. Only when it orders them.
  virtual double run_micro_batches(const std::vector<MicroBatch>& parts, StepTools& tools);
  // Returns when the gradients of what this process updates are those of the whole batch.
  virtual void finish_gradients() {}
  virtual StepAgreement agree(const StepAgreement& own) { return own; }
  virtual void after_update() {}
  virtual double comm_seconds() const { return 0; }  // waited for other processes since the last call of begin_step()

  // --- evaluation
  virtual void begin_evaluation() {}
  virtual void end_evaluation() {}
  // nullopt where another process measures the same batch.
  virtual std::optional<EvalStep> evaluate(Module& module, const Batch& batch, bool test);
  virtual EvalSums merge(EvalSums own) { return own; }

  // --- the whole of what is spread, by name, on the writer; nothing on the others
  virtual NamedTensors whole_weights(const Module& module);
  virtual NamedTensors whole_state(const NamedTensors& own) { return own; }  // of optimizer, scaler and averages
  virtual NamedTensors whole_random(const torch::Tensor& own);
  virtual Json placement() const { return nullptr; }  // which process has which part; null: one has all

  // --- the other way round: what the writer has read, as parts for every process
  virtual void broadcast(std::string& /*bytes*/) {}
  virtual TensorsByName own_weights(TensorsByName whole) { return whole; }
  virtual TensorsByName own_state(TensorsByName whole) { return whole; }
  // Of a checkpoint of `step`: nullopt when it holds none for this process.
  virtual std::optional<torch::Tensor> own_random(const TensorsByName& whole, int64_t step);
  // Behind a change of the weights that is no update: a checkpoint was loaded.
  virtual void weights_changed() {}
};

inline constexpr char kRandomState[] = "random.cpu";  // beside the optimizer's tensors, of the first process

}  // namespace assay
