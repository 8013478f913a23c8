#include "models/pre_norm_blocks.h"

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
    : options_(o), layout_(layout) {
  const int64_t width = o.hidden_size, inner = o.ffn_hidden_size;
  const double deviation = o.initializer_range;
  const double smaller = deviation / std::sqrt(2.0 * static_cast<double>(o.num_layers));
  for (int64_t i = 0; i < o.num_layers; ++i) {
    const std::string at = fmt::format("{}.{}.", names.path, i);
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

torch::Tensor PreNormBlocks::run(const torch::Tensor& embedded, AttentionOptions seen, bool training) const {
  seen.num_heads = options_.num_attention_heads;
  seen.dropout = training ? options_.attention_probs_dropout_prob : 0;
  const Call call{seen, training ? options_.hidden_dropout_prob : 0};
  const torch::Tensor x = torch::dropout(embedded, call.dropout, call.dropout > 0);
  TensorList stream = {x, layer_norm(x, blocks_.front().first_norm)};
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const auto run_one = [this, i, call](const TensorList& inputs) { return run_block(i, call, inputs); };
    stream = options_.recomputes == Recomputes::Blocks ? recompute(run_one, stream) : run_one(stream);
  }
  return stream[1];
}

torch::Tensor PreNormBlocks::attend(const Block& block, const Call& call, const torch::Tensor& normed) const {
  const auto run_one = [&block, layout = layout_, seen = call.seen](const TensorList& inputs) {
    return TensorList{attention(linear(inputs[0], block.attention.weight, layout), block.attention.bias, seen)};
  };
  return (options_.recomputes == Recomputes::Attention ? recompute(run_one, {normed}) : run_one({normed}))[0];
}

// Each addition to the residual stream goes with the normalisation behind it.
TensorList PreNormBlocks::run_block(size_t index, const Call& call, const TensorList& inputs) const {
  const Block& b = blocks_[index];
  const LayerNormWeights& next = index + 1 < blocks_.size() ? blocks_[index + 1].first_norm : last_norm_;
  const torch::Tensor seen = attend(b, call, inputs[1]);
  const ResidualNorm middle = residual_norm(
      inputs[0], {linear(seen, b.attention_out.weight, layout_), b.attention_out.bias, call.dropout}, b.second_norm);
  const torch::Tensor wide = linear(middle.normed, b.feed.weight, layout_);
  const torch::Tensor fed = gelu_linear(wide, b.feed.bias, Gelu::Tanh, b.feed_out.weight, layout_);
  const ResidualNorm end = residual_norm(middle.sum, {fed, b.feed_out.bias, call.dropout}, next);
  return {end.sum, end.normed};
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
