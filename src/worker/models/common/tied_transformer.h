// What GPT-2 and GLM share as networks: a table of tokens that is the last layer too, and blocks between. Knows nothing
// of how positions come in.
//
// Shapes: B batch, T sequence, D hidden_size, V vocab_size.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/common/pre_norm_blocks.h"
#include "models/common/token_network.h"
#include "models/common/transformer_options.h"

namespace assay {

class TiedTransformer : public TokenNetwork {
 public:
  // Segments: the embeddings, then one per block. Tokens [B, T] int64 are the first input.
  int64_t num_segments() const override { return 1 + options_.num_layers; }
  TensorList run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) override;
  torch::Tensor output(const TensorList& stream) override;  // logits [B, T, V]
  torch::Tensor loss(const TensorList& stream, const torch::Tensor& labels) override;
  std::vector<std::string> segment_parameters(int64_t index) const override;
  std::vector<WeightSplit> weight_splits() const override;
  void set_tensor_parallel(const TensorParallel& parallel) override;

 protected:
  // `table` is the name of the module that has the table. Whoever derives calls make_table() and make_blocks(), in the
  // order in which its weights are drawn.
  TiedTransformer(const TransformerOptions& options, std::string table)
      : options_(options), table_name_(std::move(table)) {}
  void make_table(PartMaker& make);
  void make_blocks(PartMaker& make, const BlockNames& names, WeightLayout layout);

  // How the blocks see the inputs.
  virtual PreNormBlocks::Pass pass(const TensorList& inputs) const = 0;
  // Embeddings [B, T, D] with positions added, where positions are tables.
  virtual torch::Tensor add_positions(const torch::Tensor& embedded, const TensorList& inputs) const = 0;

  // The mean cross entropy of rows [N, D] behind the last block, labels [N].
  torch::Tensor loss_of(const torch::Tensor& hidden, const torch::Tensor& labels) const;
  const torch::Tensor& table() const { return table_; }  // [V, D]
  const PreNormBlocks& blocks() const { return *blocks_; }

 private:
  std::string table_parameter() const { return table_name_ + ".weight"; }

  TransformerOptions options_;
  std::string table_name_;
  torch::Tensor table_;
  std::optional<PreNormBlocks> blocks_;
};

}  // namespace assay
