#include "models/glm/network.h"

#include <fmt/format.h>

#include "base/error.h"
#include "nn/linear_cross_entropy.h"

namespace assay::glm {

namespace {

constexpr char kTokens[] = "word_embeddings";
constexpr char kPositions[] = "transformer.position_embeddings";
constexpr char kSpanPositions[] = "transformer.block_position_embeddings";

}  // namespace

Transformer::Transformer(const Options& o) : options_(o) {
  PartMaker make(*this);
  const auto table = [&](const char* name, int64_t rows) {
    return make.weight(name, {rows, o.hidden_size}, o.initializer_range);
  };
  tokens_ = table(kTokens, o.vocab_size);
  positions_ = table(kPositions, o.max_position_embeddings + 1);
  span_positions_ = table(kSpanPositions, o.max_position_embeddings + 1);
  blocks_.emplace(make, o,
                  BlockNames{.path = "transformer.layers",
                             .first_norm = "input_layernorm",
                             .attention = "attention.query_key_value",
                             .attention_out = "attention.dense",
                             .second_norm = "post_attention_layernorm",
                             .feed = "mlp.dense_h_to_4h",
                             .feed_out = "mlp.dense_4h_to_h",
                             .last_norm = "transformer.final_layernorm"},
                  WeightLayout::OutIn);
}

PreNormBlocks::Pass Transformer::pass(const TensorList& inputs) const {
  return {.seen = {.causal = true, .prefix = inputs.at(2)}, .training = is_training(), .parallel = tensor_parallel()};
}

TensorList Transformer::run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) {
  if (index > 0) return blocks_->run_block(index - 1, stream, pass(inputs));
  const torch::Tensor &tokens = inputs.at(0), &positions = inputs.at(1);
  const int64_t length = tokens.size(1);
  ASSAY_CHECK(
      length <= options_.max_position_embeddings,
      fmt::format("a sequence of {} tokens; the model has {} positions", length, options_.max_position_embeddings));
  // The table is the last layer too, whose dense gradient takes in this sparse one.
  const torch::Tensor embedded =
      tensor_parallel().embedding(tokens_, options_.vocab_size, tokens, /*sparse=*/is_training());
  const torch::Tensor placed =
      torch::embedding(positions_, positions.select(1, 0)) + torch::embedding(span_positions_, positions.select(1, 1));
  return blocks_->begin(embedded + placed, pass(inputs));
}

torch::Tensor Transformer::output(const TensorList& stream) {
  const TensorParallel& parallel = tensor_parallel();
  return parallel.join_outputs(linear(parallel.enter(stream.at(1)), tokens_, WeightLayout::OutIn), options_.vocab_size);
}

torch::Tensor Transformer::loss(const TensorList& stream, const torch::Tensor& labels) {
  const torch::Tensor flat = labels.flatten();
  const torch::Tensor counting = flat.ne(kIgnoredLabel).nonzero().squeeze(1);
  const torch::Tensor hidden = tensor_parallel().enter(stream.at(1)).flatten(0, 1).index_select(0, counting);
  return tensor_parallel().linear_cross_entropy(hidden, {.weight = tokens_, .bias = {}}, options_.vocab_size,
                                                flat.index_select(0, counting));
}

std::vector<std::string> Transformer::segment_parameters(int64_t index) const {
  const std::string tokens = std::string(kTokens) + ".weight";
  std::vector<std::string> names = index == 0 ? blocks_->first_norm_parameters() : blocks_->block_parameters(index - 1);
  if (index == 0) {
    names.push_back(tokens);
    for (const std::string& name : whole_sequence_parameters()) names.push_back(name);
  }
  if (index + 1 == num_segments()) names.push_back(tokens);
  return names;
}

std::vector<WeightSplit> Transformer::weight_splits() const {
  std::vector<WeightSplit> splits = blocks_->weight_splits();
  splits.push_back({std::string(kTokens) + ".weight", 0});
  return splits;
}

std::vector<std::string> Transformer::whole_sequence_parameters() const {
  return {std::string(kPositions) + ".weight", std::string(kSpanPositions) + ".weight"};
}

void Transformer::set_tensor_parallel(const TensorParallel& parallel) {
  check_divides(options_, parallel.size());
  Network::set_tensor_parallel(parallel);
}

}  // namespace assay::glm
