#include "models/common/classifier.h"

#include <torch/nn/functional/loss.h>

namespace assay {

LossFunction Classifier::get_loss_fn() {
  return [](const torch::Tensor& logits, const torch::Tensor& label) {
    return torch::nn::functional::cross_entropy(logits, label);
  };
}

EvalStep Classifier::measure_output(const torch::Tensor& output, const Batch& batch) {
  EvalStep step = Module::measure_output(output, batch);
  const torch::Tensor correct = step.output.argmax(1).eq(label_of(batch)).sum();
  step.sums["correct"] = static_cast<double>(correct.item<int64_t>());
  return step;
}

MetricValues Classifier::validation_epoch_end(int64_t epoch, const EvalSums& sums) {
  MetricValues metrics = Module::validation_epoch_end(epoch, sums);
  metrics["accuracy"] = sums.sums.at("correct") / static_cast<double>(sums.num_samples);
  return metrics;
}

}  // namespace assay
