// The network of GPT-2 (Radford et al. 2019), with the parameter names and layouts of its published checkpoints.
//
// Shapes: B batch, T sequence, D hidden_size, V vocab_size.
#pragma once

#include "models/common/decoder.h"
#include "models/common/tied_transformer.h"

namespace assay::gpt {

using Options = TransformerOptions;

class Transformer final : public TiedTransformer, public Decoder {
 public:
  // Draws weights as GPT-2 does: normal; those that add to the residual stream smaller by sqrt(2 num_layers).
  // {tokens [B, T] int64} -> logits [B, T, V].
  explicit Transformer(const Options& options);
  std::vector<std::string> whole_sequence_parameters() const override;
  KvCache make_cache(int64_t batch) const override;
  torch::Tensor decode(const torch::Tensor& tokens, KvCache& cache) override;

 private:
  PreNormBlocks::Pass pass(const TensorList& inputs) const override;
  torch::Tensor add_positions(const torch::Tensor& embedded, const TensorList& inputs) const override;

  torch::Tensor positions_;  // embeddings [max_position_embeddings, D]
};

}  // namespace assay::gpt
