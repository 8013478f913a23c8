// What all models of the next token share: cross entropy, perplexity and bits per byte, tokens as the unit. A model
// derives from it and says only what its network, a TokenNetwork, is.
//
// Shapes: B batch, T sequence, V vocabulary.
#pragma once

#include "engine/module.h"

namespace assay {

class LanguageModel : public Module {
 public:
  // A batch is tokens [B, T] and labels [B, T], the token that follows each; -100 does not count.
  LossFunction get_loss_fn() override;  // logits [B, T, V], labels [B, T]
  std::string sample_unit() const override { return "tokens"; }
  std::optional<double> loss_weight(const Batch& batch) const override;                // the tokens that count
  torch::Tensor training_loss(const TensorList& stream, const Batch& batch) override;  // that of the TokenNetwork
  EvalStep measure_output(const torch::Tensor& output, const Batch& batch) override;
  // "loss" per token that counts, "perplexity" and, where batches say how many bytes their text has, "bits_per_byte".
  MetricValues validation_epoch_end(int64_t epoch, const EvalSums& sums) override;
};

}  // namespace assay
