// The blocks that GPT-2 and GLM share: normalisation, attention, normalisation, two layers with GELU between them, each
// half added to the residual stream.
//
// Shapes: B batch, T sequence, D width.
#pragma once

#include <functional>
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
  const char *first_norm, *attention, *attention_out, *second_norm, *feed, *feed_out;
};

struct BlockSizes {
  int64_t width = 1;
  int64_t inner = 1;  // of the feed-forward layers
  int64_t num_layers = 1;
  int64_t num_heads = 1;
  double deviation = 0.02;  // of new weights; of those that add to the residual stream smaller by sqrt(2 num_layers)
};

struct BlockDropout {
  double hidden = 0;     // of what a block adds
  double attention = 0;  // of attention's weights
};

class PreNormBlocks {
 public:
  // Parameters of block i are called path(i) + name.
  PreNormBlocks(PartMaker& make, const BlockSizes& sizes, const std::function<std::string(int64_t)>& path,
                const BlockNames& names, const std::string& last_norm, WeightLayout layout);
  // x [B, T, D] -> [B, T, D], behind the last normalisation. `seen` says who sees whom; its heads and dropout are set.
  torch::Tensor run(const torch::Tensor& x, AttentionOptions seen, const BlockDropout& dropout, Recomputes what) const;
  // The same for tokens behind those in the cache, causal, without dropout; the cache takes them in.
  torch::Tensor decode(torch::Tensor x, KvCache& cache) const;
  KvCache make_cache(int64_t batch, int64_t capacity) const;

 private:
  struct Block {
    LayerNormWeights first_norm, second_norm;
    Affine attention, attention_out, feed, feed_out;
  };
  struct Call {
    AttentionOptions seen;
    double dropout;
    Recomputes what;
  };
  // A block: {residual stream, the same normalised} -> both behind it. The normalisation is the next block's.
  TensorList run_block(size_t index, const Call& call, const TensorList& inputs) const;
  torch::Tensor attend(const Block& block, const Call& call, const torch::Tensor& normed) const;

  BlockSizes sizes_;
  WeightLayout layout_;
  std::vector<Block> blocks_;
  LayerNormWeights last_norm_;
};

}  // namespace assay
