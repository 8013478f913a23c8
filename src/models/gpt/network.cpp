#include "models/gpt/network.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "nn/attention.h"
#include "nn/bias_gelu.h"
#include "nn/linear_cross_entropy.h"
#include "nn/recompute.h"

namespace assay::gpt {

namespace {

constexpr double kEpsilon = 1e-5;  // of the published model's normalisations
constexpr auto kLayout = WeightLayout::InOut;

}  // namespace

Transformer::Transformer(const Options& o) : options_(o) {
  PartMaker make(*this);
  const double deviation = o.initializer_range;
  const double smaller = deviation / std::sqrt(2.0 * static_cast<double>(o.num_layers));
  tokens_ = make.weight("transformer.wte", {o.vocab_size, o.hidden_size}, deviation);
  positions_ = make.weight("transformer.wpe", {o.max_position_embeddings, o.hidden_size}, deviation);
  for (int64_t i = 0; i < o.num_layers; ++i) {
    const std::string at = fmt::format("transformer.h.{}.", i);
    const int64_t width = o.hidden_size, inner = o.ffn_hidden_size;
    Block block;
    block.ln_1 = make.norm(at + "ln_1", width, kEpsilon);
    block.attention = make.affine(at + "attn.c_attn", {width, 3 * width}, kLayout, deviation);
    block.attention_out = make.affine(at + "attn.c_proj", {width, width}, kLayout, smaller);
    block.ln_2 = make.norm(at + "ln_2", width, kEpsilon);
    block.feed = make.affine(at + "mlp.c_fc", {width, inner}, kLayout, deviation);
    block.feed_out = make.affine(at + "mlp.c_proj", {inner, width}, kLayout, smaller);
    blocks_.push_back(std::move(block));
  }
  ln_f_ = make.norm("transformer.ln_f", o.hidden_size, kEpsilon);
}

torch::Tensor Transformer::hidden(const torch::Tensor& tokens) {
  const int64_t length = tokens.size(1);
  ASSAY_CHECK(length <= options_.max_position_embeddings,
              fmt::format("a sequence of {} tokens; the model has {} positions", length, positions_.size(0)));
  // The table is the last layer too, whose dense gradient takes in this sparse one; dense ones would be two passes over
  // all of it.
  const torch::Tensor embedded = torch::embedding(tokens_, tokens, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false,
                                                  /*sparse=*/is_training());
  const torch::Tensor x = torch::dropout(embedded + positions_.narrow(0, 0, length), dropout(), dropout() > 0);
  TensorList stream = {x, layer_norm(x, blocks_.front().ln_1)};
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const auto run = [this, i](const TensorList& inputs) { return run_block(i, inputs); };
    stream = options_.recomputes == Recomputes::Blocks ? recompute(run, stream) : run(stream);
  }
  return stream[1];
}

torch::Tensor Transformer::attend(const Block& block, const torch::Tensor& normed) const {
  const AttentionOptions options{.num_heads = options_.num_attention_heads,
                                 .causal = true,
                                 .key_mask = {},
                                 .dropout = is_training() ? options_.attention_probs_dropout_prob : 0};
  const auto run = [&block, options](const TensorList& inputs) {
    return TensorList{attention(linear(inputs[0], block.attention.weight, kLayout), block.attention.bias, options)};
  };
  return (options_.recomputes == Recomputes::Attention ? recompute(run, {normed}) : run({normed}))[0];
}

// Each addition to the residual stream goes with the normalisation behind it.
TensorList Transformer::run_block(size_t index, const TensorList& inputs) const {
  const Block& b = blocks_[index];
  const LayerNormWeights& next = index + 1 < blocks_.size() ? blocks_[index + 1].ln_1 : ln_f_;
  const torch::Tensor seen = attend(b, inputs[1]);
  const ResidualNorm middle = residual_norm(
      inputs[0], {linear(seen, b.attention_out.weight, kLayout), b.attention_out.bias, dropout()}, b.ln_2);
  const torch::Tensor wide = linear(middle.normed, b.feed.weight, kLayout);
  const torch::Tensor fed = gelu_linear(wide, b.feed.bias, Gelu::Tanh, b.feed_out.weight, kLayout);
  const ResidualNorm end = residual_norm(middle.sum, {fed, b.feed_out.bias, dropout()}, next);
  return {end.sum, end.normed};
}

KvCache Transformer::make_cache(int64_t batch) const {
  return KvCache({.num_layers = options_.num_layers,
                  .batch = batch,
                  .num_heads = options_.num_attention_heads,
                  .head_width = options_.hidden_size / options_.num_attention_heads,
                  .capacity = options_.max_position_embeddings},
                 tokens_.options());
}

torch::Tensor Transformer::decode(const torch::Tensor& tokens, KvCache& cache) {
  const int64_t count = tokens.size(1), heads = options_.num_attention_heads;
  ASSAY_CHECK(cache.length() + count <= cache.capacity(), "more tokens than the model has positions");
  torch::Tensor x = torch::embedding(tokens_, tokens) + positions_.narrow(0, cache.length(), count);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& b = blocks_[i];
    const torch::Tensor qkv = linear(layer_norm(x, b.ln_1), b.attention.weight, kLayout) + b.attention.bias;
    const auto parts = qkv.unflatten(-1, {3, heads, options_.hidden_size / heads}).unbind(2);  // [B, T, H, d]
    const torch::Tensor seen = cache.attend(i, parts[0], parts[1], parts[2]);
    x = x + linear(seen, b.attention_out.weight, kLayout) + b.attention_out.bias;
    const torch::Tensor wide = linear(layer_norm(x, b.ln_2), b.feed.weight, kLayout);
    x = x + linear(bias_gelu(wide, b.feed.bias, Gelu::Tanh), b.feed_out.weight, kLayout) + b.feed_out.bias;
  }
  cache.advance(count);
  return linear(layer_norm(x.select(1, -1), ln_f_), tokens_, WeightLayout::OutIn);
}

torch::Tensor Transformer::forward(const TensorList& inputs) {
  return linear(hidden(inputs.at(0)), tokens_, WeightLayout::OutIn);
}

torch::Tensor Transformer::loss(const torch::Tensor& tokens, const torch::Tensor& labels) {
  return linear_cross_entropy(hidden(tokens).flatten(0, 1), {.weight = tokens_, .bias = {}}, labels.flatten());
}

}  // namespace assay::gpt
