// What models share that read tokens from left to right: their input.
#pragma once

#include "models/common/language_model.h"
#include "models/common/transformer_options.h"

namespace assay {

class NextTokenModel : public LanguageModel {
 public:
  explicit NextTokenModel(const TransformerOptions& sizes)
      : sequence_length_(sizes.sequence_length), vocab_size_(sizes.vocab_size) {}
  std::vector<InputSpec> input_spec() const override;
  double units_per_sample() const override { return static_cast<double>(sequence_length_); }

 private:
  int64_t sequence_length_, vocab_size_;
};

}  // namespace assay
