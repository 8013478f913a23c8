// The blocks that GPT-2 and GLM share: normalisation, attention, normalisation, two layers with GELU between them, each
// half added to the residual stream.
//
// Shapes: B batch, T sequence, D width.
#pragma once

#include <string>
#include <vector>

#include "engine/module.h"
#include "models/common/transformer_options.h"
#include "nn/attention.h"
#include "nn/kv_cache.h"
#include "nn/transformer_parts.h"

namespace assay {

// What a published checkpoint calls the parts of a block.
struct BlockNames {
  std::string path;  // of block i: path.i.
  std::string first_norm, attention, attention_out, second_norm, feed, feed_out;
  std::string last_norm;  // behind all blocks
};

class PreNormBlocks {
 public:
  // New weights have the deviation initializer_range; those that add to the residual stream smaller by
  // sqrt(2 num_layers).
  PreNormBlocks(PartMaker& make, const TransformerOptions& options, const BlockNames& names, WeightLayout layout);
  // How all blocks of one pass are called.
  struct Pass {
    AttentionOptions seen;         // who sees whom; heads and dropout are set by the blocks
    bool training = false;         // with dropout, of the embeddings too
    TensorParallel parallel = {};  // who has which part of the weights
  };
  // Embeddings [B, T, D] -> the stream before the first block: {residual stream, the same normalised}.
  TensorList begin(const torch::Tensor& embedded, const Pass& pass) const;
  // The stream behind block `index`. The normalisation there is the next block's; behind the last block the second
  // tensor is what the network's last layer reads.
  TensorList run_block(int64_t index, const TensorList& stream, const Pass& pass) const;

  // --- what Network says of itself (engine/module.h)
  std::vector<std::string> first_norm_parameters() const;
  std::vector<std::string> block_parameters(int64_t index) const;  // those that run_block() reads
  std::vector<WeightSplit> weight_splits() const;
  // The same for tokens behind those in the cache, causal, without dropout; the cache takes them in.
  torch::Tensor decode(torch::Tensor x, KvCache& cache) const;
  KvCache make_cache(int64_t batch) const;

 private:
  struct Block {
    LayerNormWeights first_norm, second_norm;
    Affine attention, attention_out, feed, feed_out;
  };
  // A pass as the operators see it.
  struct Call {
    AttentionOptions seen;
    double dropout;   // of what a block adds
    uint64_t stream;  // of that dropout
    TensorParallel parallel;
  };
  Call call_of(const Pass& pass) const;
  TensorList compute_block(size_t index, const Call& call, const TensorList& inputs) const;
  torch::Tensor attend(const Block& block, const Call& call, const torch::Tensor& normed) const;
  std::string path_of(int64_t index) const;

  TransformerOptions options_;
  BlockNames names_;
  WeightLayout layout_;
  std::vector<Block> blocks_;
  LayerNormWeights last_norm_;
};

}  // namespace assay
