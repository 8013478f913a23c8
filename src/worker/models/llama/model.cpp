#include "models/llama/model.h"

#include "models/common/transformer_options.h"

namespace assay::llama {

namespace {

// Llama's: 8/3 of the width, so that three matrices have as many weights as two of four times the width; the next
// multiple of 256.
int64_t inner_width(int64_t width) { return (8 * width / 3 + 255) / 256 * 256; }

}  // namespace

Options read_options(Reader& section) {
  Options o;
  read_transformer_options(section, o, inner_width);
  o.num_key_value_heads = size_option(section, "num_key_value_heads", o.num_attention_heads, o.num_attention_heads);
  if (o.num_attention_heads % o.num_key_value_heads != 0) {
    section.fail("num_key_value_heads", "must divide num_attention_heads");
  }
  if (o.hidden_size / o.num_attention_heads % 2 != 0) {
    section.fail("num_attention_heads", "must leave heads of an even width: they are rotated in pairs");
  }
  o.rms_norm_eps = positive_option(section, "rms_norm_eps", o.rms_norm_eps);
  o.rope_theta = positive_option(section, "rope_theta", o.rope_theta);
  o.tie_word_embeddings = section.get_bool("tie_word_embeddings", o.tie_word_embeddings);
  section.finish();
  return o;
}

std::shared_ptr<Network> Llama::get_model() { return std::make_shared<Transformer>(options_); }

TensorsByName Llama::from_published(TensorsByName tensors) const {
  std::erase_if(tensors, [&](const auto& item) {
    return item.first.ends_with(".rotary_emb.inv_freq") ||
           (options_.tie_word_embeddings && item.first == "lm_head.weight");
  });
  return tensors;
}

std::optional<double> Llama::flops_per_sample() const {
  const auto d = static_cast<double>(options_.hidden_size), t = static_cast<double>(options_.sequence_length);
  const auto layers = static_cast<double>(options_.num_layers);
  const double shared =
      d * static_cast<double>(options_.num_key_value_heads) / static_cast<double>(options_.num_attention_heads);
  const double block = 2 * d * d + 2 * d * shared + 3 * d * static_cast<double>(options_.ffn_hidden_size);
  const double weights = layers * block + d * static_cast<double>(options_.vocab_size);
  return kTrainFlops * weights * t + layers * 6 * t * (t + 1) * d;
}

ModelEntry entry() {
  const Options defaults;
  std::vector<OptionDoc> options = transformer_option_docs(defaults);
  options.push_back({"num_key_value_heads", nullptr, "heads of keys and values; null: num_attention_heads"});
  options.push_back({"rms_norm_eps", defaults.rms_norm_eps, "added to the mean square before its root"});
  options.push_back({"rope_theta", defaults.rope_theta, "base of the rotations' angles"});
  options.push_back({"tie_word_embeddings", defaults.tie_word_embeddings, "the last layer is the embeddings' table"});
  return {.name = "llama",
          .summary = "Llama, a language model (Touvron et al. 2023)",
          .options = std::move(options),
          .make = [](Reader& section) { return std::make_unique<Llama>(read_options(section)); }};
}

}  // namespace assay::llama
