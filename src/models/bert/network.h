// The network of BERT (Devlin et al. 2018) with both heads of its pre-training, or one that classifies texts, and the
// parameter names of its published checkpoints.
//
// Shapes: B batch, T sequence, D hidden_size, V vocab_size, K num_classes.
#pragma once

#include <optional>

#include "engine/module.h"
#include "models/transformer_options.h"
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

// What the network reads, all [B, T] int64: tokens, the segment each belongs to, and 1 for tokens, 0 for padding.
struct Sequences {
  torch::Tensor tokens, types, mask;
};

class Encoder final : public Network {
 public:
  explicit Encoder(const Options& options);
  // {tokens, types, mask} -> logits of the masked-language head [B, T, V], of a classifier [B, K]
  torch::Tensor forward(const TensorList& inputs) override;
  struct Answers {
    torch::Tensor language;  // [B, T, V]
    torch::Tensor next;      // [B, 2]
  };
  // What both heads of pre-training say, for every position.
  Answers answers(const Sequences& inputs);
  // The sum of both pre-training losses: the mean cross entropy of masked tokens [B, T] (-100: not masked) and of
  // whether the second segment follows the first [B]. Only masked positions go through the language head.
  torch::Tensor loss(const Sequences& inputs, const torch::Tensor& masked, const torch::Tensor& next);

 private:
  struct Block {
    Affine query, key, value, attention_out, feed, feed_out;
    LayerNormWeights attention_norm, feed_norm;
  };
  Block make_block(PartMaker& make, const std::string& path);
  torch::Tensor hidden(const Sequences& inputs);  // [B, T, D]
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
