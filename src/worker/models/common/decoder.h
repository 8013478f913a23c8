// A network that continues texts: what is read once is kept, so that the next token costs one token's work.
//
// Shapes: B batch, T tokens, V vocabulary.
#pragma once

#include "nn/kv_cache.h"

namespace assay {

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual KvCache make_cache(int64_t batch) const = 0;  // holds the longest sequence
  // Reads tokens [B, T] behind those in the cache; the logits of what follows the last one, [B, V].
  virtual torch::Tensor decode(const torch::Tensor& tokens, KvCache& cache) = 0;
};

}  // namespace assay
