#include "models/glm/model.h"

#include <fmt/format.h>

#include "data/blank_tokens.h"
#include "models/transformer_options.h"
#include "nn/linear_cross_entropy.h"

namespace assay::glm {

Options read_options(Reader& section) {
  Options o;
  read_transformer_options(section, o);
  if (o.vocab_size <= kNumBlankTokens) {
    section.fail("vocab_size", fmt::format("must be more than {}, the tokens that mark blanks", kNumBlankTokens));
  }
  section.finish();
  return o;
}

std::shared_ptr<Network> Glm::get_model() { return std::make_shared<Transformer>(options_); }

std::vector<InputSpec> Glm::input_spec() const {
  const int64_t length = options_.sequence_length;
  return {{.name = "tokens", .dtype = torch::kLong, .shape = {-1, length}, .num_values = options_.vocab_size},
          {.name = "positions", .dtype = torch::kLong, .shape = {-1, 2, length}, .num_values = length + 1},
          {.name = "text", .dtype = torch::kLong, .shape = {-1}, .num_values = length + 1}};
}

torch::Tensor Glm::training_loss(const TensorList& stream, const Batch& batch) {
  return dynamic_cast<Transformer&>(model()).loss(stream, label_of(batch));
}

EvalStep Glm::measure_output(const torch::Tensor& output, const Batch& batch) {
  EvalStep step = LanguageModel::measure_output(output, batch);
  const BlankTokens blanks(options_.vocab_size);
  const torch::Tensor& labels = label_of(batch);
  const torch::Tensor spans = labels.masked_fill(labels.eq(blanks.end), kIgnoredLabel);
  const auto count = static_cast<double>(spans.ne(kIgnoredLabel).sum().item<int64_t>());
  step.sums["span_tokens"] = count;
  step.sums["span_nats"] = count > 0 ? loss_fn()(step.output, spans).item<double>() * count : 0;
  return step;
}

MetricValues Glm::validation_epoch_end(int64_t epoch, const EvalSums& sums) {
  MetricValues metrics = LanguageModel::validation_epoch_end(epoch, sums);
  metrics["span_loss"] = sums.sums.at("span_nats") / sums.sums.at("span_tokens");
  return metrics;
}

// All tokens go through the blocks; that only a share of them goes through the last layer is not counted for it.
std::optional<double> Glm::flops_per_sample() const {
  const auto d = static_cast<double>(options_.hidden_size), t = static_cast<double>(options_.sequence_length);
  const auto layers = static_cast<double>(options_.num_layers);
  const double weights = layers * (4 * d * d + 2 * d * static_cast<double>(options_.ffn_hidden_size));
  return kTrainFlops * weights * t + layers * 12 * t * t * d;
}

ModelEntry entry() {
  return {.name = "glm",
          .summary = "GLM, a language model that fills blanks (Du et al. 2021)",
          .options = transformer_option_docs(Options{}),
          .make = [](Reader& section) { return std::make_unique<Glm>(read_options(section)); }};
}

}  // namespace assay::glm
