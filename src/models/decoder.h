// A network that continues texts, and the loop that does it: greedy, or sampled from the most probable tokens.
//
// Shapes: T tokens, V vocabulary.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "nn/kv_cache.h"

namespace assay {

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual KvCache make_cache(int64_t batch) const = 0;  // holds the longest sequence
  // Reads tokens [B, T] behind those in the cache; the logits of what follows the last one, [B, V].
  virtual torch::Tensor decode(const torch::Tensor& tokens, KvCache& cache) = 0;
};

// The names are those of the configuration's section Generation.
struct GenerateOptions {
  bool greedy = false;            // always the most probable token
  int64_t top_k = 50;             // sample from so many best tokens; 0: all
  double top_p = 0.75;            // of these from the best with this total probability; 1: all
  double temperature = 1;         // divides the logits
  double repetition_penalty = 1;  // logits of tokens that were there are divided by it, negative ones multiplied
  int64_t min_tokens = 0;         // before these the end token is not chosen
  int64_t max_tokens = 200;       // of the continuation
  std::optional<int64_t> end_token = std::nullopt;  // ends the continuation and is not part of it
};

// Logits [V] as sampling sees them: the penalty of Keskar et al. 2019, temperature, top-k, then top-p (Holtzman et al.
// 2020); what cannot be chosen is minus infinity. The most probable token always can.
torch::Tensor sampling_logits(const torch::Tensor& logits, const std::vector<int64_t>& before,
                              const GenerateOptions& options);

// The tokens that follow the prompt, which may not be empty; fewer when the longest sequence or the end is reached.
// Random numbers come from libtorch's default generator. `on_token` is told each token as soon as it is known.
std::vector<int64_t> generate(Decoder& decoder, const std::vector<int64_t>& prompt, const GenerateOptions& options,
                              const std::function<void(int64_t)>& on_token = nullptr);

}  // namespace assay
