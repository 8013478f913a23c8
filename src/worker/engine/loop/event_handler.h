// FlagPerf's events as methods, as its users write them: override what you want to hear, register the handler in
// EngineServices::observers or return it from Module::event_handlers(). Handlers see, they do not change.
//
// Order in a run (docs/design/engine.md has the data of each):
//   INIT_START, CONVERT_MODEL, CREATE_OPTIMIZER, MODEL_TO_FP16, MODEL_TO_DDP, SUBMIT_INFO, INIT_END, LAUNCH_TRAINING,
//   TRAIN_START, { EPOCH_BEGIN, { STEP_BEGIN, BACKWARD.., STEP_END, INIT_EVALUATION, EVALUATE }.., EPOCH_END }..,
//   TRAIN_END, FINISHED
#pragma once

#include "engine/loop/observer.h"

namespace assay {

class EventHandler : public EngineObserver {
 public:
  virtual void on_init_start(const Json& /*data*/) {}
  virtual void on_convert_model(const Json& /*data*/) {}
  virtual void on_create_optimizer(const Json& /*data*/) {}
  virtual void on_model_to_fp16(const Json& /*data*/) {}
  virtual void on_model_to_ddp(const Json& /*data*/) {}
  virtual void on_submit_info(const Json& /*data*/) {}
  virtual void on_init_end(const Json& /*data*/) {}
  virtual void on_launch_training(const Json& /*data*/) {}
  virtual void on_train_start(const Json& /*data*/) {}
  virtual void on_epoch_begin(const Json& /*data*/) {}
  virtual void on_step_begin(const Json& /*data*/) {}
  virtual void on_backward(const Json& /*data*/) {}
  virtual void on_step_end(const Json& /*data*/) {}
  virtual void on_init_evaluation(const Json& /*data*/) {}
  virtual void on_evaluate(const Json& /*data*/) {}
  virtual void on_epoch_end(const Json& /*data*/) {}
  virtual void on_train_end(const Json& /*data*/) {}
  virtual void on_finished(const Json& /*data*/) {}
  // Our own events, which FlagPerf does not have: RESUMED, CHECKPOINT, ... (keys.h).
  virtual void on_other(std::string_view /*name*/, const Json& /*data*/) {}

  void on_event(std::string_view name, const Json& data) final;
  bool wants_step_events() const override { return true; }
};

}  // namespace assay
