#include "models/glm/model.h"

#include <fmt/format.h>

#include "data/blank_tokens.h"
#include "models/common/transformer_options.h"
#include "nn/linear_cross_entropy.h"

namespace assay::glm {

Options read_options(Reader& section) {
  Options o;
  read_transformer_options(section, o);
  if (o.vocab_size <= kNumBlankTokens) {
    section.fail("vocab_size", fmt::format("must be more than {}, the tokens that mark blanks", kNumBlankTokens));
  }
  o.positions = section.get_choice("position_embedding", {"learned", "rotary"}, "learned") == "rotary"
                    ? PositionKind::Rotary
                    : PositionKind::Learned;
  if (o.positions == PositionKind::Rotary && o.hidden_size / o.num_attention_heads % 4 != 0) {
    section.fail("position_embedding",
                 "rotary needs heads (hidden_size / num_attention_heads) of a width that 4 divides");
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

EvalStep Glm::measure_output(const torch::Tensor& output, const Batch& batch) {
  EvalStep step = LanguageModel::measure_output(output, batch);
  const BlankTokens blanks(options_.vocab_size);
  const torch::Tensor labels = label_of(batch).flatten(), inputs = batch.tensors[0].flatten();
  const auto sum_up = [&](const std::string& name, const torch::Tensor& which) {
    const torch::Tensor rows = which.nonzero().squeeze(1);
    const auto count = static_cast<double>(rows.numel());
    const torch::Tensor logits = step.output.flatten(0, 1).index_select(0, rows).unsqueeze(0);
    step.sums[name + "_tokens"] = count;
    step.sums[name + "_nats"] = count > 0 ? loss_fn()(logits, labels.index_select(0, rows)).item<double>() * count : 0;
  };
  const torch::Tensor spans = labels.ne(kIgnoredLabel).logical_and(labels.ne(blanks.end));
  sum_up("span", spans);
  sum_up("first", spans.logical_and(inputs.eq(blanks.start)));
  return step;
}

MetricValues Glm::validation_epoch_end(int64_t epoch, const EvalSums& sums) {
  MetricValues metrics = LanguageModel::validation_epoch_end(epoch, sums);
  for (const std::string name : {"span", "first"}) {
    const double count = sums.sums.at(name + "_tokens");
    if (count > 0) metrics[name + "_loss"] = sums.sums.at(name + "_nats") / count;
  }
  return metrics;
}

// All tokens go through the blocks; that only a share of them goes through the last layer is not counted for it.
std::optional<double> Glm::flops_per_sample() const {
  const auto d = static_cast<double>(options_.hidden_size), t = static_cast<double>(options_.sequence_length);
  const auto layers = static_cast<double>(options_.num_layers);
  const double weights = layers * (4 * d * d + 2 * d * static_cast<double>(options_.ffn_hidden_size));
  return kTrainFlops * weights * t + layers * 12 * t * t * d;
}

std::vector<OptionDoc> option_docs() {
  std::vector<OptionDoc> docs = transformer_option_docs(Options{});
  docs.push_back(
      {"position_embedding", "learned", "learned: two tables, as published; rotary: rotations of the heads"});
  return docs;
}

ModelEntry entry() {
  return {.name = "glm",
          .summary = "GLM, a language model that fills blanks (Du et al. 2021)",
          .options = option_docs(),
          .make = [](Reader& section) { return std::make_unique<Glm>(read_options(section)); }};
}

}  // namespace assay::glm
