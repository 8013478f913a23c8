// What the options of all transformers share: what they are, how they are read, checked and described. The names are
// FleetX's.
#pragma once

#include <string>
#include <vector>

#include "config/reader.h"
#include "models/registry.h"

namespace assay {

// Which activations are computed again in the backward pass instead of kept. The scores of attention always are.
enum class Recomputes { Nothing, Attention, Blocks };

// The defaults are GPT-2's of 124 million parameters.
struct TransformerOptions {
  int64_t vocab_size = 50257;
  int64_t hidden_size = 768;
  int64_t num_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t ffn_hidden_size = 3072;
  int64_t max_position_embeddings = 1024;
  int64_t sequence_length = 1024;  // tokens of a sample; the export declares it
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double initializer_range = 0.02;  // standard deviation of new weights
  Recomputes recomputes = Recomputes::Nothing;
};

// The inner width of a transformer of this width, unless it is given.
inline int64_t four_times(int64_t width) { return 4 * width; }

// Reads and checks them; the caller finishes the section.
void read_transformer_options(Reader& section, TransformerOptions& options,
                              int64_t (*inner_width)(int64_t width) = four_times);
std::vector<OptionDoc> transformer_option_docs(const TransformerOptions& defaults);

// Throws ConfigError when so many tensor-parallel processes cannot share the heads and the inner width equally.
void check_divides(const TransformerOptions& options, int64_t num_processes);

// Options of one key each. Throw ConfigError.
int64_t size_option(Reader& section, const std::string& key, int64_t fallback, int64_t max);
double share_option(Reader& section, const std::string& key, double fallback);     // from 0 to below 1
double positive_option(Reader& section, const std::string& key, double fallback);  // above 0

}  // namespace assay
