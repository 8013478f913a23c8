#include "models/common/language_model.h"

#include <torch/nn/functional/loss.h>

#include <cmath>

#include "models/common/token_network.h"
#include "nn/linear_cross_entropy.h"

namespace assay {

LossFunction LanguageModel::get_loss_fn() {
  return [](const torch::Tensor& logits, const torch::Tensor& labels) {
    return torch::nn::functional::cross_entropy(logits.flatten(0, 1), labels.flatten());
  };
}

std::optional<double> LanguageModel::loss_weight(const Batch& batch) const {
  return static_cast<double>(label_of(batch).ne(kIgnoredLabel).sum().item<int64_t>());
}

torch::Tensor LanguageModel::training_loss(const TensorList& stream, const Batch& batch) {
  return dynamic_cast<TokenNetwork&>(model()).loss(stream, label_of(batch));
}

EvalStep LanguageModel::measure_output(const torch::Tensor& output, const Batch& batch) {
  EvalStep step = Module::measure_output(output, batch);
  const double num_tokens = *loss_weight(batch);
  step.sums["tokens"] = num_tokens;
  step.sums["nats"] = num_tokens > 0 ? step.loss.item<double>() * num_tokens : 0;
  if (batch.text_bytes) step.sums["bytes"] = *batch.text_bytes;
  return step;
}

MetricValues LanguageModel::validation_epoch_end(int64_t, const EvalSums& sums) {
  const double nats = sums.sums.at("nats");
  const double loss = nats / sums.sums.at("tokens");
  MetricValues metrics = {{"loss", loss}, {"perplexity", std::exp(loss)}};
  if (const auto bytes = sums.sums.find("bytes"); bytes != sums.sums.end()) {
    metrics["bits_per_byte"] = nats / std::log(2.0) / bytes->second;
  }
  return metrics;
}

}  // namespace assay
