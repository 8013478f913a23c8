// The network of Llama (Touvron et al. 2023): rotary positions, RMS normalisation, SwiGLU and grouped-query attention,
// with the parameter names of Hugging Face's checkpoints.
//
// Shapes: B batch, T sequence, D hidden_size, V vocab_size.
#pragma once

#include "models/common/decoder.h"
#include "models/common/token_network.h"
#include "models/common/transformer_options.h"
#include "nn/rotary.h"
#include "nn/transformer_parts.h"

namespace assay::llama {

// The defaults are TinyLlama's, 1.1 billion parameters.
struct Options : TransformerOptions {
  Options() {
    vocab_size = 32000;
    hidden_size = 2048;
    num_layers = 22;
    num_attention_heads = 32;
    ffn_hidden_size = 5632;
    max_position_embeddings = sequence_length = 2048;
    hidden_dropout_prob = attention_probs_dropout_prob = 0;
  }
  int64_t num_key_value_heads = 4;  // each serves num_attention_heads / num_key_value_heads heads
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000;
  bool tie_word_embeddings = false;  // the last layer is the table of embeddings
};

class Transformer final : public TokenNetwork, public Decoder {
 public:
  // {tokens [B, T] int64} -> logits [B, T, V]. Segments: the embeddings, then one per block.
  explicit Transformer(const Options& options);
  int64_t num_segments() const override { return 1 + options_.num_layers; }
  TensorList run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) override;
  torch::Tensor output(const TensorList& stream) override;
  torch::Tensor loss(const TensorList& stream, const torch::Tensor& labels) override;
  std::vector<std::string> segment_parameters(int64_t index) const override;
  std::vector<WeightSplit> weight_splits() const override;
  void set_tensor_parallel(const TensorParallel& parallel) override;
  KvCache make_cache(int64_t batch) const override;
  torch::Tensor decode(const torch::Tensor& tokens, KvCache& cache) override;

 private:
  struct Block {
    torch::Tensor attention_norm, query, key, value, attention_out;
    torch::Tensor feed_norm, gate, up, down;
  };
  // [B, T, heads, width of a head] each; positions from `first` on are in query and key.
  struct Heads {
    torch::Tensor query, key, value;
  };
  Heads heads_of(const Block& block, const torch::Tensor& normed, int64_t first) const;
  torch::Tensor feed(const Block& block, const torch::Tensor& x) const;  // SwiGLU, normalisation included
  torch::Tensor hidden(const TensorList& stream) const;                  // what the last layer reads
  std::string head_name() const;
  torch::Tensor run_block(const Block& block, const torch::Tensor& x) const;
  torch::Tensor attend(const Block& block, const torch::Tensor& normed) const;
  torch::Tensor dropped(const torch::Tensor& x, uint64_t stream) const;  // the hidden dropout of training

  Options options_;
  torch::Tensor tokens_, head_;  // [V, D] both; the same when they are tied
  std::vector<Block> blocks_;
  torch::Tensor norm_;
  Rotations rotations_;
};

}  // namespace assay::llama
