// A model as the engine sees it: FleetX's hooks. The engine calls them in a fixed order (docs/design/engine.md) and
// knows nothing else of the model; a module knows nothing of loops, files and records.
//
// What a model is and how it is measured are in module/model_definition.h and module/measured_model.h.
#pragma once

#include <memory>
#include <vector>

#include "engine/module/measured_model.h"
#include "engine/module/train_log.h"

namespace assay {

class EngineObserver;
struct EngineOptions;

// Not thread-safe: the engine calls every hook from one thread.
class Module : public MeasuredModel {
 public:
  // --- the functions of FleetX's BasicModule; init() is in ModelDefinition
  virtual Batch pretreating_batch(Batch batch) { return batch; }
  virtual torch::Tensor training_step(const Batch& batch);  // training_loss() of the network
  virtual void training_step_end(const TrainLog& log);      // prints FleetX's line
  virtual EvalStep validation_step(const Batch& batch);     // measure_output() of forward()
  virtual void validation_step_end(const EvalLog& log);
  virtual EvalStep test_step(const Batch& batch) { return validation_step(batch); }
  virtual void test_step_end(const EvalLog& log) { validation_step_end(log); }
  virtual std::unique_ptr<Optimizer> configure_optimizers(const Optimizer::Options& options);

  // --- what a model may change beside them
  // Looks at the options of the run before anything is made from them. Throws ConfigError for those it cannot work
  // with.
  virtual void process_configs(const EngineOptions& /*options*/) {}
  // Handlers of events that the model brings along; they must live as long as the module (engine/loop/event_handler.h).
  virtual std::vector<EngineObserver*> event_handlers() { return {}; }
  virtual torch::Tensor forward(const TensorList& inputs) { return model().forward(inputs); }
  virtual void backward(const torch::Tensor& loss) { loss.backward(); }
  virtual void training_epoch_end(int64_t /*epoch*/, double /*seconds*/) {}
};

}  // namespace assay
