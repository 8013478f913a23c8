#include "engine/strategy.h"

#include "base/error.h"
#include "engine/tensor_file.h"

namespace assay {

double Strategy::run_micro_batches(const std::vector<MicroBatch>& /*parts*/, StepTools& /*tools*/) {
  throw InternalError("this strategy does not order micro-batches");
}

std::optional<EvalStep> Strategy::evaluate(Module& module, const Batch& batch, bool test) {
  return test ? module.test_step(batch) : module.validation_step(batch);
}

NamedTensors Strategy::whole_weights(const Module& module) { return state_of(module.model()); }

NamedTensors Strategy::whole_random(const torch::Tensor& own) { return {{kRandomState, own}}; }

std::optional<torch::Tensor> Strategy::own_random(const TensorsByName& whole, int64_t /*step*/) {
  const auto found = whole.find(kRandomState);
  return found == whole.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace assay
