// Whoever wants to know what the engine does: the record writer, and handlers of vendors and tools. Observers see, they
// do not change.
#pragma once

#include <string_view>

#include "base/json.h"
#include "engine/loop/training_state.h"
#include "engine/module.h"

namespace assay {

struct Evaluation {
  int64_t epoch = 0;
  int64_t global_step = 0;
  int64_t num_samples = 0;
  double num_units = 0;  // the same in Module::sample_unit()s
  double seconds = 0;
  MetricValues metrics;  // has "loss"
};

class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  virtual void on_event(std::string_view /*name*/, const Json& /*data*/) {}  // names: keys.h
  // Whether it also gets STEP_BEGIN, BACKWARD and STEP_END. Asked once; when nobody wants them they are not made.
  virtual bool wants_step_events() const { return false; }
  virtual void on_train_log(const TrainLog& /*log*/) {}
  virtual void on_evaluation(const Evaluation& /*evaluation*/, const TrainingState& /*state*/) {}
};

}  // namespace assay
