// The network of GPT-2 (Radford et al. 2019), with the parameter names and layouts of its published checkpoints.
//
// Shapes: B batch, T sequence, D hidden_size, V vocab_size.
#pragma once

#include <optional>

#include "models/next_token_network.h"
#include "models/pre_norm_blocks.h"
#include "models/transformer_options.h"

namespace assay::gpt {

using Options = TransformerOptions;

class Transformer final : public NextTokenNetwork {
 public:
  // Draws weights as GPT-2 does: normal; those that add to the residual stream smaller by sqrt(2 num_layers).
  explicit Transformer(const Options& options);
  // {tokens [B, T] int64} -> logits [B, T, V]
  torch::Tensor forward(const TensorList& inputs) override;
  torch::Tensor loss(const torch::Tensor& tokens, const torch::Tensor& labels) override;
  KvCache make_cache(int64_t batch) const override;
  torch::Tensor decode(const torch::Tensor& tokens, KvCache& cache) override;

 private:
  torch::Tensor hidden(const torch::Tensor& tokens);  // [B, T, D], behind the last normalisation

  Options options_;
  torch::Tensor tokens_, positions_;  // embeddings [V, D] and [max_position_embeddings, D]
  std::optional<PreNormBlocks> blocks_;
};

}  // namespace assay::gpt
