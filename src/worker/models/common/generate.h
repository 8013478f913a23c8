// Continuing a text token by token: greedy, sampled, or by beam search.
//
// Shapes: V vocabulary.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "config/reader.h"
#include "models/common/decoder.h"

namespace assay {

enum class DecodeStrategy { Sampling, Greedy, Beam };

// The section Generation of the configuration.
struct GenerateOptions {
  DecodeStrategy strategy = DecodeStrategy::Sampling;
  int64_t top_k = 50;             // sample from so many best tokens; 0: all
  double top_p = 0.75;            // of these from the best with this total probability; 1: all
  double temperature = 1;         // divides the logits that are sampled from
  double repetition_penalty = 1;  // logits of tokens that were there are divided by it, negative ones multiplied
  int64_t num_beams = 4;          // of beam search: texts that are followed at once
  double length_penalty = 0;      // of beam search: a text's log probability is divided by its length to this power
  int64_t min_tokens = 1;         // before these the end token is not chosen
  int64_t max_tokens = 200;       // of the continuation
  int64_t num_texts = 1;          // continuations of a prompt; only whoever samples gets different ones
  int64_t num_tokens = 0;         // only tokens below it are chosen; 0: all
  std::optional<int64_t> end_token = std::nullopt;  // ends the continuation and is not part of it
};
// All but what the tokenizer says. Throws ConfigError.
GenerateOptions read_generation(Reader section);

struct Generated {
  std::vector<int64_t> tokens;  // of the continuation
  double first_token_s = 0;     // from the prompt to the first token
  double seconds = 0;           // in all
  // Tokens a second behind the first one; nullopt: there are none.
  std::optional<double> tokens_per_s() const;
};

// What follows the prompt, which may not be empty; it ends where the longest sequence or the end token is. Random
// numbers come from libtorch's default generator. `on_token` is told each token as soon as it is known: not before the
// end when beams are searched. Throws UsageError for a prompt that the model cannot read, InterruptedError after a
// signal to stop.
Generated generate(Decoder& decoder, const std::vector<int64_t>& prompt, const GenerateOptions& options,
                   const std::function<void(int64_t)>& on_token = nullptr);

// Logits [V] as sampling sees them: the penalty of Keskar et al. 2019, temperature, top-k, then top-p (Holtzman et al.
// 2020); what cannot be chosen is minus infinity. The most probable token always can.
torch::Tensor sampling_logits(const torch::Tensor& logits, const std::vector<int64_t>& before,
                              const GenerateOptions& options);

}  // namespace assay
