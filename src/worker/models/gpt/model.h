// GPT-2 as a language model: the loss of the next token.
#pragma once

#include "models/common/next_token_model.h"
#include "models/gpt/network.h"
#include "models/registry.h"

namespace assay::gpt {

class Gpt final : public NextTokenModel {
 public:
  explicit Gpt(const Options& options) : NextTokenModel(options), options_(options) {}
  std::shared_ptr<Network> get_model() override;
  // Hugging Face's: with or without the leading "transformer.", attention's masks and the tied last layer among them.
  TensorsByName from_published(TensorsByName tensors) const override;
  // Floating-point operations of forward and backward pass for one sequence: 6 a weight and token, 6 T (T + 1) D a
  // layer for attention, of which the causal half is counted.
  std::optional<double> flops_per_sample() const override;

 private:
  Options options_;
};

// Reads and checks the section Model, except its name.
Options read_options(Reader& section);

ModelEntry entry();

}  // namespace assay::gpt
