#include "models/gpt/model.h"

#include <torch/nn/functional/loss.h>

#include "models/transformer_options.h"

namespace assay::gpt {

Options read_options(Reader& section) {
  Options o;
  o.vocab_size = size_option(section, "vocab_size", o.vocab_size, 10'000'000);
  o.hidden_size = size_option(section, "hidden_size", o.hidden_size, 1 << 17);
  o.num_layers = size_option(section, "num_layers", o.num_layers, 1000);
  o.num_attention_heads = size_option(section, "num_attention_heads", o.num_attention_heads, 1 << 12);
  if (o.hidden_size % o.num_attention_heads != 0) section.fail("num_attention_heads", "must divide hidden_size");
  o.ffn_hidden_size = size_option(section, "ffn_hidden_size", 4 * o.hidden_size, 1 << 19);
  o.max_position_embeddings = size_option(section, "max_position_embeddings", o.max_position_embeddings, 1 << 20);
  o.sequence_length = size_option(section, "sequence_length", o.max_position_embeddings, o.max_position_embeddings);
  o.hidden_dropout_prob = share_option(section, "hidden_dropout_prob", o.hidden_dropout_prob);
  o.attention_probs_dropout_prob =
      share_option(section, "attention_probs_dropout_prob", o.attention_probs_dropout_prob);
  o.initializer_range = section.get_double("initializer_range", o.initializer_range);
  if (!(o.initializer_range > 0)) section.fail("initializer_range", "must be above 0");
  o.recomputes = recompute_option(section);
  section.finish();
  return o;
}

std::shared_ptr<Network> Gpt::get_model() { return std::make_shared<Transformer>(options_); }

LossFunction Gpt::get_loss_fn() {
  return [](const torch::Tensor& logits, const torch::Tensor& labels) {
    return torch::nn::functional::cross_entropy(logits.flatten(0, 1), labels.flatten());
  };
}

std::vector<InputSpec> Gpt::input_spec() const {
  return {{.name = "tokens",
           .dtype = torch::kLong,
           .shape = {-1, options_.sequence_length},
           .num_values = options_.vocab_size}};
}

torch::Tensor Gpt::training_step(const Batch& batch) {
  return dynamic_cast<Transformer&>(model()).loss(inputs_of(batch).at(0), label_of(batch));
}

std::optional<double> Gpt::flops_per_sample() const {
  const auto d = static_cast<double>(options_.hidden_size), t = static_cast<double>(options_.sequence_length);
  const auto layers = static_cast<double>(options_.num_layers);
  const double weights = layers * (4 * d * d + 2 * d * static_cast<double>(options_.ffn_hidden_size)) +
                         d * static_cast<double>(options_.vocab_size);
  return 6 * weights * t + layers * 6 * t * (t + 1) * d;
}

}  // namespace assay::gpt
