// Llama as a language model: the loss of the next token.
#pragma once

#include "models/common/next_token_model.h"
#include "models/llama/network.h"
#include "models/registry.h"

namespace assay::llama {

class Llama final : public NextTokenModel {
 public:
  explicit Llama(const Options& options) : NextTokenModel(options), options_(options) {}
  std::shared_ptr<Network> get_model() override;
  // Hugging Face's, in which the rotations' frequencies may be, and the last layer although it is tied.
  TensorsByName from_published(TensorsByName tensors) const override;
  // As gpt's: 6 a weight and token, and 6 T (T + 1) D a layer for attention.
  std::optional<double> flops_per_sample() const override;

 private:
  Options options_;
};

// Reads and checks the section Model, except its name.
Options read_options(Reader& section);

ModelEntry entry();

}  // namespace assay::llama
