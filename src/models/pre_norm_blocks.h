// The blocks that GPT-2 and GLM share: normalisation, attention, normalisation, two layers with GELU between them, each
// half added to the residual stream.
//
// Shapes: B batch, T sequence, D width.
#pragma once

#include <string>
#include <vector>

#include "engine/module.h"
#include "models/transformer_options.h"
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
  // Embeddings [B, T, D] -> [B, T, D], behind the last normalisation. `seen` says who sees whom; its heads and dropout
  // are set. With `training` there is dropout, of the embeddings too.
  torch::Tensor run(const torch::Tensor& embedded, AttentionOptions seen, bool training) const;
  // The same for tokens behind those in the cache, causal, without dropout; the cache takes them in.
  torch::Tensor decode(torch::Tensor x, KvCache& cache) const;
  KvCache make_cache(int64_t batch) const;

 private:
  struct Block {
    LayerNormWeights first_norm, second_norm;
    Affine attention, attention_out, feed, feed_out;
  };
  struct Call {
    AttentionOptions seen;
    double dropout;  // of what a block adds
  };
  // A block: {residual stream, the same normalised} -> both behind it. The normalisation is the next block's.
  TensorList run_block(size_t index, const Call& call, const TensorList& inputs) const;
  torch::Tensor attend(const Block& block, const Call& call, const torch::Tensor& normed) const;

  TransformerOptions options_;
  WeightLayout layout_;
  std::vector<Block> blocks_;
  LayerNormWeights last_norm_;
};

}  // namespace assay
