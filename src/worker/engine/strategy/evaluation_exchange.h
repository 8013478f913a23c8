// How the processes of a job measure a model together. The defaults are those of one process.
//
// Every process of a job makes the same calls in the same order.
#pragma once

#include <optional>

#include "engine/module.h"

namespace assay {

class EvaluationExchange {
 public:
  virtual ~EvaluationExchange() = default;
  virtual void begin_evaluation() {}
  virtual void end_evaluation() {}
  // By test_step() or validation_step(); nullopt where another process measures the same batch.
  virtual std::optional<EvalStep> evaluate(Module& module, const Batch& batch, bool test);
  virtual EvalSums merge(EvalSums mine) { return mine; }
};

}  // namespace assay
