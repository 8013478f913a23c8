#include "models/gpt/network.h"

#include <fmt/format.h>

#include "base/error.h"
#include "nn/linear_cross_entropy.h"

namespace assay::gpt {

namespace {

constexpr char kTokens[] = "transformer.wte";
constexpr char kPositions[] = "transformer.wpe";

}  // namespace

Transformer::Transformer(const Options& o) : options_(o) {
  PartMaker make(*this);
  tokens_ = make.weight(kTokens, {o.vocab_size, o.hidden_size}, o.initializer_range);
  positions_ = make.weight(kPositions, {o.max_position_embeddings, o.hidden_size}, o.initializer_range);
  blocks_.emplace(make, o,
                  BlockNames{.path = "transformer.h",
                             .first_norm = "ln_1",
                             .attention = "attn.c_attn",
                             .attention_out = "attn.c_proj",
                             .second_norm = "ln_2",
                             .feed = "mlp.c_fc",
                             .feed_out = "mlp.c_proj",
                             .last_norm = "transformer.ln_f"},
                  WeightLayout::InOut);
}

PreNormBlocks::Pass Transformer::pass() const {
  return {.seen = {.causal = true}, .training = is_training(), .parallel = tensor_parallel()};
}

TensorList Transformer::run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) {
  if (index > 0) return blocks_->run_block(index - 1, stream, pass());
  const torch::Tensor& tokens = inputs.at(0);
  const int64_t length = tokens.size(1);
  ASSAY_CHECK(length <= options_.max_position_embeddings,
              fmt::format("a sequence of {} tokens; the model has {} positions", length, positions_.size(0)));
  // The table is the last layer too, whose dense gradient takes in this sparse one; dense ones would be two passes over
  // all of it.
  const torch::Tensor embedded = tensor_parallel().embedding(tokens_, options_.vocab_size, tokens,
                                                             /*sparse=*/is_training() && can_be_sparse(tokens_));
  return blocks_->begin(embedded + positions_.narrow(0, 0, length), pass());
}

torch::Tensor Transformer::output(const TensorList& stream) {
  const TensorParallel& parallel = tensor_parallel();
  return parallel.join_outputs(linear(parallel.enter(stream.at(1)), tokens_, WeightLayout::OutIn), options_.vocab_size);
}

torch::Tensor Transformer::loss(const TensorList& stream, const torch::Tensor& labels) {
  const torch::Tensor hidden = tensor_parallel().enter(stream.at(1));
  return tensor_parallel().linear_cross_entropy(hidden.flatten(0, 1), {.weight = tokens_, .bias = {}},
                                                options_.vocab_size, labels.flatten());
}

std::vector<std::string> Transformer::segment_parameters(int64_t index) const {
  const std::string tokens = std::string(kTokens) + ".weight";
  std::vector<std::string> names = index == 0 ? blocks_->first_norm_parameters() : blocks_->block_parameters(index - 1);
  if (index == 0) names.insert(names.end(), {tokens, std::string(kPositions) + ".weight"});
  if (index + 1 == num_segments()) names.push_back(tokens);
  return names;
}

std::vector<WeightSplit> Transformer::weight_splits() const {
  std::vector<WeightSplit> splits = blocks_->weight_splits();
  splits.push_back({std::string(kTokens) + ".weight", 0});
  return splits;
}

std::vector<std::string> Transformer::whole_sequence_parameters() const {
  return {std::string(kPositions) + ".weight"};
}

void Transformer::set_tensor_parallel(const TensorParallel& parallel) {
  check_divides(options_, parallel.size());
  Network::set_tensor_parallel(parallel);
}

KvCache Transformer::make_cache(int64_t batch) const { return blocks_->make_cache(batch); }

torch::Tensor Transformer::decode(const torch::Tensor& tokens, KvCache& cache) {
  const int64_t count = tokens.size(1);
  ASSAY_CHECK(cache.length() + count <= cache.capacity(), "more tokens than the model has positions");
  const torch::Tensor x = torch::embedding(tokens_, tokens) + positions_.narrow(0, cache.length(), count);
  return linear(blocks_->decode(x, cache).select(1, -1), tokens_, WeightLayout::OutIn);
}

}  // namespace assay::gpt
