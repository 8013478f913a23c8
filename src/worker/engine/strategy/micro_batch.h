// A step in parts: micro-batches, and who decides the order of their forward and backward passes.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/module.h"
#include "engine/precision/operator_precision.h"

namespace assay {

// A part of a step that is computed at once.
struct MicroBatch {
  Batch batch;
  double share = 1;  // of its mean loss in the loss of the step, over all processes
};

// What a schedule needs of the engine.
struct StepTools {
  Module& module;
  std::function<std::unique_ptr<AutocastScope>()> autocast;
  std::function<void(const torch::Tensor& loss, double share)> backward;  // of loss * share * loss scale
  double& forward_s;                                                      // time spent, to be added to
  double& backward_s;
};

// Runs the micro-batches of a step in an order of its own: a pipeline.
class MicroBatchSchedule {
 public:
  virtual ~MicroBatchSchedule() = default;
  // Forward and backward of all of them; the sum of loss * share that this process has.
  virtual double run(const std::vector<MicroBatch>& parts, StepTools& tools) = 0;
};

}  // namespace assay
