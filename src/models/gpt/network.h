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
  // {tokens [B, T] int64} -> logits [B, T, V]. Segments: the embeddings, then one a block.
  explicit Transformer(const Options& options);
  int64_t num_segments() const override { return 1 + options_.num_layers; }
  TensorList run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) override;
  torch::Tensor output(const TensorList& stream) override;
  torch::Tensor loss(const TensorList& stream, const torch::Tensor& labels) override;
  std::vector<std::string> segment_parameters(int64_t index) const override;
  std::vector<WeightSplit> weight_splits() const override;
  std::vector<std::string> whole_sequence_parameters() const override;
  void set_tensor_parallel(const TensorParallel& parallel) override;
  KvCache make_cache(int64_t batch) const override;
  torch::Tensor decode(const torch::Tensor& tokens, KvCache& cache) override;

 private:
  PreNormBlocks::Pass pass() const;

  Options options_;
  torch::Tensor tokens_, positions_;  // embeddings [V, D] and [max_position_embeddings, D]
  std::optional<PreNormBlocks> blocks_;
};

}  // namespace assay::gpt
