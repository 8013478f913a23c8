// What models share that read tokens from left to right: their input, and the loss that their network gives.
#pragma once

#include "models/language_model.h"
#include "models/transformer_options.h"

namespace assay {

// The network of one that derives from it is a NextTokenNetwork.
class NextTokenModel : public LanguageModel {
 public:
  explicit NextTokenModel(const TransformerOptions& sizes)
      : sequence_length_(sizes.sequence_length), vocab_size_(sizes.vocab_size) {}
  std::vector<InputSpec> input_spec() const override;
  double units_per_sample() const override { return static_cast<double>(sequence_length_); }
  torch::Tensor training_loss(const TensorList& stream, const Batch& batch) override;

 private:
  int64_t sequence_length_, vocab_size_;
};

}  // namespace assay
