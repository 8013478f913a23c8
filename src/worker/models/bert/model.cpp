#include "models/bert/model.h"

#include <torch/nn/functional/loss.h>

#include "base/error.h"
#include "models/common/transformer_options.h"
#include "nn/linear_cross_entropy.h"

namespace assay::bert {

namespace {

std::vector<InputSpec> inputs_with(const Options& o) {
  const std::vector<int64_t> shape = {-1, o.sequence_length};
  return {{.name = "tokens", .dtype = torch::kLong, .shape = shape, .num_values = o.vocab_size},
          {.name = "types", .dtype = torch::kLong, .shape = shape, .num_values = o.type_vocab_size},
          {.name = "mask", .dtype = torch::kLong, .shape = shape, .num_values = 2}};
}

double flops_of_body(const Options& o) {
  const auto d = static_cast<double>(o.hidden_size), t = static_cast<double>(o.sequence_length);
  const auto layers = static_cast<double>(o.num_layers);
  const double weights = layers * (4 * d * d + 2 * d * static_cast<double>(o.ffn_hidden_size));
  return kTrainFlops * weights * t + layers * 12 * t * t * d;
}

// Google's and Hugging Face's: old names of normalisations, positions and the tied last layer among the weights.
TensorsByName published_encoder(const TensorsByName& tensors) {
  TensorsByName ours;
  for (const auto& [name, tensor] : tensors) {
    if (name == "bert.embeddings.position_ids" || name.starts_with("cls.predictions.decoder.")) continue;
    const auto renamed = [&](std::string_view from, const char* to) {
      return name.ends_with(from) ? name.substr(0, name.size() - from.size()) + to : name;
    };
    const std::string newer = renamed("LayerNorm.gamma", "LayerNorm.weight");
    ours[newer == name ? renamed("LayerNorm.beta", "LayerNorm.bias") : newer] = tensor;
  }
  return ours;
}

double sum_of(const torch::Tensor& values) { return values.sum().item<double>(); }

}  // namespace

Options read_options(Reader& section) {
  Options o;
  read_transformer_options(section, o);
  o.type_vocab_size = size_option(section, "type_vocab_size", o.type_vocab_size, 1000);
  o.num_classes = section.get_optional_int("num_classes");
  if (o.num_classes && (*o.num_classes < 2 || *o.num_classes > 1'000'000)) {
    section.fail("num_classes", "must be from 2 to 1000000");
  }
  section.finish();
  return o;
}

std::shared_ptr<Network> Bert::get_model() { return std::make_shared<Encoder>(options_); }

LossFunction Bert::get_loss_fn() {
  return [](const torch::Tensor& logits, const torch::Tensor& masked) {
    return torch::nn::functional::cross_entropy(logits.flatten(0, 1), masked.flatten());
  };
}

std::vector<InputSpec> Bert::input_spec() const { return inputs_with(options_); }

// The last two tensors of a batch are answers, which inputs_of() knows nothing of; the network reads the first three.
torch::Tensor Bert::training_loss(const TensorList& stream, const Batch& batch) {
  ASSAY_CHECK(batch.tensors.size() == 5, "a batch of BERT has tokens, types, mask, masked and next");
  return dynamic_cast<Encoder&>(model()).loss(stream, batch.tensors[3], batch.tensors[4]);
}

EvalStep Bert::measure_stream(const TensorList& stream, const Batch& batch) {
  const Encoder::Answers answers = dynamic_cast<Encoder&>(model()).answers(stream);
  const torch::Tensor& next = batch.tensors[4];
  const torch::Tensor next_loss = torch::nn::functional::cross_entropy(answers.next, next);
  EvalStep step = measure_output(answers.language, batch);
  step.loss = step.loss + next_loss;
  step.sums["next_nats"] = next_loss.item<double>() * static_cast<double>(batch.num_samples);
  step.sums["next_correct"] = sum_of(answers.next.argmax(1).eq(next));
  return step;
}

EvalStep Bert::measure_output(const torch::Tensor& output, const Batch& batch) {
  const torch::Tensor& masked = batch.tensors[3];
  const double num_masked = sum_of(masked.ne(kIgnoredLabel));
  EvalStep step;
  step.loss = loss_fn()(output, masked);
  step.output = output;
  step.num_samples = batch.num_samples;
  step.sums["masked"] = num_masked;
  step.sums["language_nats"] = num_masked > 0 ? step.loss.item<double>() * num_masked : 0;
  step.sums["language_correct"] = sum_of(output.argmax(-1).eq(masked));
  return step;
}

MetricValues Bert::validation_epoch_end(int64_t, const EvalSums& sums) {
  const auto num_samples = static_cast<double>(sums.num_samples);
  const double masked = sums.sums.at("masked");
  const double language_loss = sums.sums.at("language_nats") / masked;
  MetricValues metrics = {{"loss", language_loss},
                          {"language_loss", language_loss},
                          {"language_accuracy", sums.sums.at("language_correct") / masked}};
  if (!sums.sums.contains("next_nats")) return metrics;
  metrics["next_loss"] = sums.sums.at("next_nats") / num_samples;
  metrics["next_accuracy"] = sums.sums.at("next_correct") / num_samples;
  metrics["loss"] += metrics["next_loss"];
  return metrics;
}

TensorsByName Bert::from_published(TensorsByName tensors) const { return published_encoder(tensors); }

std::optional<double> Bert::flops_per_sample() const {
  const auto d = static_cast<double>(options_.hidden_size);
  const double head = d * d + d * static_cast<double>(options_.vocab_size);
  return flops_of_body(options_) + kTrainFlops * head * static_cast<double>(options_.sequence_length * 15 / 100);
}

std::shared_ptr<Network> BertClassifier::get_model() { return std::make_shared<Encoder>(options_); }

std::vector<InputSpec> BertClassifier::input_spec() const { return inputs_with(options_); }

TensorsByName BertClassifier::from_published(TensorsByName tensors) const {
  TensorsByName ours = published_encoder(tensors);
  std::erase_if(ours, [](const auto& item) { return item.first.starts_with("cls."); });
  for (const auto& item : model().named_parameters()) {
    if (item.key().starts_with("classifier.")) ours.try_emplace(item.key(), item.value().detach());
  }
  return ours;
}

std::optional<double> BertClassifier::flops_per_sample() const {
  const auto d = static_cast<double>(options_.hidden_size);
  return flops_of_body(options_) + kTrainFlops * (d * d + d * static_cast<double>(options_.num_classes.value()));
}

ModelEntry entry() {
  const Options defaults;
  std::vector<OptionDoc> options = transformer_option_docs(defaults);
  options.push_back({"type_vocab_size", defaults.type_vocab_size, "segments"});
  options.push_back({"num_classes", nullptr, "classify texts; null: pre-training, masked tokens and next sentence"});
  return {.name = "bert",
          .summary = "BERT, an encoder of texts (Devlin et al. 2018)",
          .options = std::move(options),
          .make = [](Reader& section) -> std::unique_ptr<Module> {
            const Options read = read_options(section);
            if (read.num_classes) return std::make_unique<BertClassifier>(read);
            return std::make_unique<Bert>(read);
          }};
}

}  // namespace assay::bert
