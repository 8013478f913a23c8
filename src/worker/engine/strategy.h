// How the processes of a job share one training run, as the engine sees it: who this process is, and what it exchanges
// with the others for a step, for an evaluation and for a checkpoint. Those of several processes are in parallel/.
#pragma once

#include <memory>

#include "engine/options.h"
#include "engine/strategy/evaluation_exchange.h"
#include "engine/strategy/state_exchange.h"
#include "engine/strategy/step_exchange.h"
#include "engine/strategy/topology.h"

namespace assay {

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual Topology topology() const = 0;

  // Once, before the optimizer is made: places the weights and says what the optimizer updates
  // (Module::set_trained_parameters). Throws ConfigError for what the model or the options cannot do.
  virtual void prepare(Module& module, const EngineOptions& options) = 0;
  // Who updates the weights, where the processes do not do it themselves; null: the adapter's optimizer.
  virtual std::unique_ptr<Optimizer> create_optimizer(const Optimizer::Options& /*options*/) { return nullptr; }
  // Level O2's weights, where not every process has all of them to make copies of; null: the adapter's.
  virtual std::unique_ptr<LowPrecisionWeights> create_low_weights(torch::ScalarType /*dtype*/) { return nullptr; }

  // Each lives as long as the strategy.
  virtual StepExchange& step() = 0;
  virtual EvaluationExchange& evaluation() = 0;
  virtual StateExchange& state() = 0;
};

// The strategy of a job of one process: nothing is exchanged.
class OneProcess final : public Strategy {
 public:
  Topology topology() const override { return {}; }
  void prepare(Module& /*module*/, const EngineOptions& /*options*/) override {}
  StepExchange& step() override { return step_; }
  EvaluationExchange& evaluation() override { return evaluation_; }
  StateExchange& state() override { return state_; }

 private:
  StepExchange step_;
  EvaluationExchange evaluation_;
  StateExchange state_;
};

}  // namespace assay
