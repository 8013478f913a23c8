#include "models/common/pre_norm_blocks.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "nn/bias_gelu.h"
#include "nn/recompute.h"

namespace assay {

namespace {

constexpr double kPreNormEpsilon = 1e-5;  // of the published models' normalisations

}  // namespace

PreNormBlocks::PreNormBlocks(PartMaker& make, const TransformerOptions& o, const BlockNames& names, WeightLayout layout)
    : options_(o), names_(names), layout_(layout) {
  const int64_t width = o.hidden_size, inner = o.ffn_hidden_size;
  const double deviation = o.initializer_range;
  const double smaller = deviation / std::sqrt(2.0 * static_cast<double>(o.num_layers));
  for (int64_t i = 0; i < o.num_layers; ++i) {
    const std::string at = path_of(i);
    Block block;
    block.first_norm = make.norm(at + names.first_norm, width, kPreNormEpsilon);
    block.attention = make.affine(at + names.attention, {width, 3 * width}, layout, deviation);
    block.attention_out = make.affine(at + names.attention_out, {width, width}, layout, smaller);
    block.second_norm = make.norm(at + names.second_norm, width, kPreNormEpsilon);
    block.feed = make.affine(at + names.feed, {width, inner}, layout, deviation);
    block.feed_out = make.affine(at + names.feed_out, {inner, width}, layout, smaller);
    blocks_.push_back(std::move(block));
  }
  last_norm_ = make.norm(names.last_norm, width, kPreNormEpsilon);
}

std::string PreNormBlocks::path_of(int64_t index) const { return fmt::format("{}.{}.", names_.path, index); }

PreNormBlocks::Call PreNormBlocks::call_of(const Pass& pass) const {
  AttentionOptions seen = pass.seen;
  seen.num_heads = options_.num_attention_heads / pass.parallel.size();
  seen.dropout = pass.training ? options_.attention_probs_dropout_prob : 0;
  seen.dropout_stream = pass.parallel.dropout_stream();
  // What is computed alike everywhere drops alike; parts of a sequence do not.
  const uint64_t stream = pass.parallel.splits_sequence() ? pass.parallel.dropout_stream() : 0;
  return {seen, pass.training ? options_.hidden_dropout_prob : 0, stream, pass.parallel};
}

TensorList PreNormBlocks::begin(const torch::Tensor& embedded, const Pass& pass) const {
  const double dropout = call_of(pass).dropout;
  const torch::Tensor x = pass.parallel.split_sequence(torch::dropout(embedded, dropout, dropout > 0));
  return {x, layer_norm(x, blocks_.front().first_norm)};
}

TensorList PreNormBlocks::run_block(int64_t index, const TensorList& stream, const Pass& pass) const {
  const auto run_one = [this, i = static_cast<size_t>(index), call = call_of(pass)](const TensorList& inputs) {
    return compute_block(i, call, inputs);
  };
  return options_.recomputes == Recomputes::Blocks ? recompute(run_one, stream) : run_one(stream);
}

torch::Tensor PreNormBlocks::attend(const Block& block, const Call& call, const torch::Tensor& normed) const {
  const auto run_one = [&block, layout = layout_, call](const TensorList& inputs) {
    const torch::Tensor entered = call.parallel.enter(inputs[0]);
    return TensorList{attention(linear(entered, block.attention.weight, layout), block.attention.bias, call.seen)};
  };
  return (options_.recomputes == Recomputes::Attention ? recompute(run_one, {normed}) : run_one({normed}))[0];
}

// Each addition to the residual stream goes with the normalisation behind it.
TensorList PreNormBlocks::compute_block(size_t index, const Call& call, const TensorList& inputs) const {
  const Block& b = blocks_[index];
  const LayerNormWeights& next = index + 1 < blocks_.size() ? blocks_[index + 1].first_norm : last_norm_;
  const torch::Tensor seen = attend(b, call, inputs[1]);
  const torch::Tensor attended = call.parallel.leave(linear(seen, b.attention_out.weight, layout_));
  const ResidualNorm middle =
      residual_norm(inputs[0], {attended, b.attention_out.bias, call.dropout, call.stream}, b.second_norm);
  const torch::Tensor wide = linear(call.parallel.enter(middle.normed), b.feed.weight, layout_);
  const torch::Tensor fed = call.parallel.leave(gelu_linear(wide, b.feed.bias, Gelu::Tanh, b.feed_out.weight, layout_));
  const ResidualNorm end = residual_norm(middle.sum, {fed, b.feed_out.bias, call.dropout, call.stream}, next);
  return {end.sum, end.normed};
}

std::vector<std::string> PreNormBlocks::first_norm_parameters() const {
  return with_bias({path_of(0) + names_.first_norm});
}

std::vector<std::string> PreNormBlocks::block_parameters(int64_t index) const {
  const std::string at = path_of(index);
  const bool is_last = index + 1 == options_.num_layers;
  return with_bias({at + names_.attention, at + names_.attention_out, at + names_.second_norm, at + names_.feed,
                    at + names_.feed_out, is_last ? names_.last_norm : path_of(index + 1) + names_.first_norm});
}

std::vector<WeightSplit> PreNormBlocks::weight_splits() const {
  const int64_t out = layout_ == WeightLayout::OutIn ? 0 : 1;  // the dimension of a weight's outputs
  std::vector<WeightSplit> splits;
  for (int64_t i = 0; i < options_.num_layers; ++i) {
    const std::string at = path_of(i);
    splits.push_back({at + names_.attention + ".weight", out, 3});
    splits.push_back({at + names_.attention + ".bias", 0, 3});
    splits.push_back({at + names_.attention_out + ".weight", 1 - out});
    splits.push_back({at + names_.feed + ".weight", out});
    splits.push_back({at + names_.feed + ".bias", 0});
    splits.push_back({at + names_.feed_out + ".weight", 1 - out});
  }
  return splits;
}

KvCache PreNormBlocks::make_cache(int64_t batch) const {
  return KvCache({.num_layers = options_.num_layers,
                  .batch = batch,
                  .num_heads = options_.num_attention_heads,
                  .head_width = options_.hidden_size / options_.num_attention_heads,
                  .capacity = options_.max_position_embeddings},
                 last_norm_.weight.options());
}

torch::Tensor PreNormBlocks::decode(torch::Tensor x, KvCache& cache) const {
  const int64_t heads = options_.num_attention_heads;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& b = blocks_[i];
    const torch::Tensor qkv = linear(layer_norm(x, b.first_norm), b.attention.weight, layout_) + b.attention.bias;
    const auto parts = qkv.unflatten(-1, {3, heads, options_.hidden_size / heads}).unbind(2);
    const torch::Tensor seen = cache.attend(i, parts[0], parts[1], parts[2]);  // of [B, T, H, d] each
    x = x + linear(seen, b.attention_out.weight, layout_) + b.attention_out.bias;
    const torch::Tensor wide = linear(layer_norm(x, b.second_norm), b.feed.weight, layout_);
    x = x + linear(bias_gelu(wide, b.feed.bias, Gelu::Tanh), b.feed_out.weight, layout_) + b.feed_out.bias;
  }
  cache.advance(x.size(1));
  return layer_norm(x, last_norm_);
}

}  // namespace assay
