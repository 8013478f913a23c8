#include "models/common/transformer_options.h"

#include <fmt/format.h>

#include "base/error.h"

namespace assay {

namespace {

// FleetX's use_recompute and recompute_granularity.
Recomputes recompute_option(Reader& section) {
  const bool use = section.get_bool("use_recompute", false);
  const std::string what = section.get_choice("recompute_granularity", {"full", "full_attn", "core_attn"}, "full");
  if (!use || what == "core_attn") return Recomputes::Nothing;
  return what == "full" ? Recomputes::Blocks : Recomputes::Attention;
}

}  // namespace

void check_divides(const TransformerOptions& options, int64_t num_processes) {
  const auto check = [&](const char* key, int64_t value) {
    if (value % num_processes == 0) return;
    throw ConfigError(
        fmt::format("Model.{} ({}) must be divisible by Distributed.mp_degree ({})", key, value, num_processes));
  };
  check("num_attention_heads", options.num_attention_heads);
  check("ffn_hidden_size", options.ffn_hidden_size);
}

int64_t size_option(Reader& section, const std::string& key, int64_t fallback, int64_t max) {
  const int64_t value = section.get_int(key, fallback);
  if (value < 1 || value > max) section.fail(key, "must be from 1 to " + std::to_string(max));
  return value;
}

double share_option(Reader& section, const std::string& key, double fallback) {
  const double value = section.get_double(key, fallback);
  if (!(value >= 0 && value < 1)) section.fail(key, "must be from 0 to below 1");
  return value;
}

double positive_option(Reader& section, const std::string& key, double fallback) {
  const double value = section.get_double(key, fallback);
  if (!(value > 0)) section.fail(key, "must be above 0");
  return value;
}

void read_transformer_options(Reader& section, TransformerOptions& o, int64_t (*inner_width)(int64_t width)) {
  o.vocab_size = size_option(section, "vocab_size", o.vocab_size, 10'000'000);
  o.hidden_size = size_option(section, "hidden_size", o.hidden_size, 1 << 17);
  o.num_layers = size_option(section, "num_layers", o.num_layers, 1000);
  o.num_attention_heads = size_option(section, "num_attention_heads", o.num_attention_heads, 1 << 12);
  if (o.hidden_size % o.num_attention_heads != 0) section.fail("num_attention_heads", "must divide hidden_size");
  o.ffn_hidden_size = size_option(section, "ffn_hidden_size", inner_width(o.hidden_size), 1 << 19);
  o.max_position_embeddings = size_option(section, "max_position_embeddings", o.max_position_embeddings, 1 << 20);
  o.sequence_length = size_option(section, "sequence_length", o.max_position_embeddings, o.max_position_embeddings);
  o.hidden_dropout_prob = share_option(section, "hidden_dropout_prob", o.hidden_dropout_prob);
  o.attention_probs_dropout_prob =
      share_option(section, "attention_probs_dropout_prob", o.attention_probs_dropout_prob);
  o.initializer_range = positive_option(section, "initializer_range", o.initializer_range);
  o.recomputes = recompute_option(section);
}

std::vector<OptionDoc> transformer_option_docs(const TransformerOptions& o) {
  return {{"vocab_size", o.vocab_size, "tokens of the vocabulary"},
          {"hidden_size", o.hidden_size, "width"},
          {"num_layers", o.num_layers, "blocks"},
          {"num_attention_heads", o.num_attention_heads, "heads; must divide hidden_size"},
          {"ffn_hidden_size", nullptr, "width inside the feed-forward layers; null: a multiple of hidden_size"},
          {"max_position_embeddings", o.max_position_embeddings, "longest sequence"},
          {"sequence_length", nullptr, "tokens of a sample; null: max_position_embeddings"},
          {"hidden_dropout_prob", o.hidden_dropout_prob, "dropout of embeddings and of what blocks add"},
          {"attention_probs_dropout_prob", o.attention_probs_dropout_prob, "dropout of attention's weights"},
          {"initializer_range", o.initializer_range, "standard deviation of new weights"},
          {"use_recompute", false, "compute activations again in the backward pass instead of keeping them"},
          {"recompute_granularity", "full", "which: full (blocks), full_attn (attention) or core_attn (its scores)"}};
}

}  // namespace assay
