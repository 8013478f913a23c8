#include "models/gpt/model.h"

#include "models/common/transformer_options.h"

namespace assay::gpt {

Options read_options(Reader& section) {
  Options o;
  read_transformer_options(section, o);
  section.finish();
  return o;
}

std::shared_ptr<Network> Gpt::get_model() { return std::make_shared<Transformer>(options_); }

TensorsByName Gpt::from_published(TensorsByName tensors) const {
  TensorsByName ours;
  for (auto& [name, tensor] : tensors) {
    if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name == "lm_head.weight") continue;
    ours[name.starts_with("transformer.") ? name : "transformer." + name] = tensor;
  }
  return ours;
}

std::optional<double> Gpt::flops_per_sample() const {
  const auto d = static_cast<double>(options_.hidden_size), t = static_cast<double>(options_.sequence_length);
  const auto layers = static_cast<double>(options_.num_layers);
  const double weights = layers * (4 * d * d + 2 * d * static_cast<double>(options_.ffn_hidden_size)) +
                         d * static_cast<double>(options_.vocab_size);
  return kTrainFlops * weights * t + layers * 6 * t * (t + 1) * d;
}

ModelEntry entry() {
  return {.name = "gpt",
          .summary = "GPT-2, a language model (Radford et al. 2019)",
          .options = transformer_option_docs(Options{}),
          .make = [](Reader& section) { return std::make_unique<Gpt>(read_options(section)); }};
}

}  // namespace assay::gpt
