#include "engine/strategy/evaluation_exchange.h"

namespace assay {

std::optional<EvalStep> EvaluationExchange::evaluate(Module& module, const Batch& batch, bool test) {
  return test ? module.test_step(batch) : module.validation_step(batch);
}

}  // namespace assay
