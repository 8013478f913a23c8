// The network of BERT (Devlin et al. 2018) with both heads of its pre-training, or one that classifies texts, and the
// parameter names of its published checkpoints.
//
// Shapes: B batch, T sequence, D hidden_size, V vocab_size, K num_classes.
#pragma once

#include <optional>

#include "engine/module.h"
#include "models/common/transformer_options.h"
#include "nn/attention.h"
#include "nn/transformer_parts.h"

namespace assay::bert {

// The defaults are BERT base, uncased.
struct Options : TransformerOptions {
  Options() {
    vocab_size = 30522;
    max_position_embeddings = sequence_length = 512;
  }
  int64_t type_vocab_size = 2;
  std::optional<int64_t> num_classes;  // classes of texts; nullopt: the heads of pre-training
};

class Encoder final : public Network {
 public:
  // {tokens, types, mask} -> logits of the masked-language head [B, T, V], of a classifier [B, K]. All inputs are
  // [B, T] int64: tokens, the segment each belongs to, and 1 for tokens, 0 for padding. Segments (of the network): the
  // embeddings, then one per block.
  explicit Encoder(const Options& options);
  int64_t num_segments() const override { return 1 + options_.num_layers; }
  TensorList run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) override;
  torch::Tensor output(const TensorList& stream) override;
  struct Answers {
    torch::Tensor language;  // [B, T, V]
    torch::Tensor next;      // [B, 2]
  };
  // What both heads of pre-training say, for every position.
  Answers answers(const TensorList& stream);
  // The sum of both pre-training losses: the mean cross entropy of masked tokens [B, T] (-100: not masked) and of
  // whether the second segment follows the first [B]. Only masked positions go through the language head.
  torch::Tensor loss(const TensorList& stream, const torch::Tensor& masked, const torch::Tensor& next);
  std::vector<std::string> segment_parameters(int64_t index) const override;
  std::vector<WeightSplit> weight_splits() const override;
  std::vector<std::string> whole_sequence_parameters() const override;
  void set_tensor_parallel(const TensorParallel& parallel) override;

 private:
  struct Block {
    Affine query, key, value, attention_out, feed, feed_out;
    LayerNormWeights attention_norm, feed_norm;
  };
  Block make_block(PartMaker& make, const std::string& path);
  torch::Tensor embed(const TensorList& inputs);          // [B, T, D]
  std::vector<std::string> embedding_parameters() const;  // those without parts
  std::vector<std::string> head_parameters() const;
  torch::Tensor run_block(const Block& block, const torch::Tensor& x, const AttentionOptions& attends) const;
  torch::Tensor transformed(const torch::Tensor& rows);        // what the language head does before its last layer
  torch::Tensor language_logits(const torch::Tensor& hidden);  // [B, T, V]
  // From the first token: [B, 2], of a classifier [B, K].
  torch::Tensor pooled_logits(const torch::Tensor& hidden, const Affine& head);

  Options options_;
  torch::Tensor tokens_, positions_, types_;  // embeddings
  LayerNormWeights embedding_norm_, head_norm_;
  std::vector<Block> blocks_;
  Affine pooler_, head_, next_, classifier_;
  torch::Tensor head_bias_;  // [V]
};

}  // namespace assay::bert
