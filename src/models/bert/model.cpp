#include "models/bert/model.h"

#include <torch/nn/functional/loss.h>

#include "base/error.h"
#include "models/transformer_options.h"

namespace assay::bert {

namespace {

Sequences sequences_of(const Batch& batch) {
  ASSAY_CHECK(batch.tensors.size() == 5, "a batch of BERT has tokens, types, mask, masked and next");
  return {batch.tensors[0], batch.tensors[1], batch.tensors[2]};
}

}  // namespace

Options read_options(Reader& section) {
  Options o;
  o.vocab_size = size_option(section, "vocab_size", o.vocab_size, 10'000'000);
  o.hidden_size = size_option(section, "hidden_size", o.hidden_size, 1 << 17);
  o.num_layers = size_option(section, "num_layers", o.num_layers, 1000);
  o.num_attention_heads = size_option(section, "num_attention_heads", o.num_attention_heads, 1 << 12);
  if (o.hidden_size % o.num_attention_heads != 0) section.fail("num_attention_heads", "must divide hidden_size");
  o.ffn_hidden_size = size_option(section, "ffn_hidden_size", 4 * o.hidden_size, 1 << 19);
  o.max_position_embeddings = size_option(section, "max_position_embeddings", o.max_position_embeddings, 1 << 20);
  o.type_vocab_size = size_option(section, "type_vocab_size", o.type_vocab_size, 1000);
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

std::shared_ptr<Network> Bert::get_model() { return std::make_shared<Encoder>(options_); }

LossFunction Bert::get_loss_fn() {
  return [](const torch::Tensor& logits, const torch::Tensor& masked) {
    return torch::nn::functional::cross_entropy(logits.flatten(0, 1), masked.flatten());
  };
}

std::vector<InputSpec> Bert::input_spec() const {
  const std::vector<int64_t> shape = {-1, options_.sequence_length};
  return {{.name = "tokens", .dtype = torch::kLong, .shape = shape, .num_values = options_.vocab_size},
          {.name = "types", .dtype = torch::kLong, .shape = shape, .num_values = options_.type_vocab_size},
          {.name = "mask", .dtype = torch::kLong, .shape = shape, .num_values = 2}};
}

torch::Tensor Bert::training_step(const Batch& batch) {
  return dynamic_cast<Encoder&>(model()).loss(sequences_of(batch), batch.tensors[3], batch.tensors[4]);
}

EvalStep Bert::validation_step(const Batch& batch) {
  EvalStep step;
  step.loss = training_step(batch);
  step.output = forward(inputs_of(batch));
  step.num_samples = batch.num_samples;
  return step;
}

std::optional<double> Bert::flops_per_sample() const {
  const auto d = static_cast<double>(options_.hidden_size), t = static_cast<double>(options_.sequence_length);
  const auto layers = static_cast<double>(options_.num_layers);
  const double body = layers * (4 * d * d + 2 * d * static_cast<double>(options_.ffn_hidden_size));
  const double head = d * d + d * static_cast<double>(options_.vocab_size);
  return 6 * body * t + 6 * head * static_cast<double>(options_.sequence_length * 15 / 100) + layers * 12 * t * t * d;
}

}  // namespace assay::bert
