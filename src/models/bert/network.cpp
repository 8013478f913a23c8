#include "models/bert/network.h"

#include <fmt/format.h>
#include <torch/nn/functional/loss.h>

#include "base/error.h"
#include "nn/attention.h"
#include "nn/bias_gelu.h"
#include "nn/linear_cross_entropy.h"
#include "nn/recompute.h"

namespace assay::bert {

namespace {

constexpr double kEpsilon = 1e-12;  // of the published model's normalisations
constexpr auto kLayout = WeightLayout::OutIn;

}  // namespace

Encoder::Encoder(const Options& o) : options_(o) {
  PartMaker make(*this);
  const double deviation = o.initializer_range;
  const AffineSize square{o.hidden_size, o.hidden_size};
  tokens_ = make.weight("bert.embeddings.word_embeddings", {o.vocab_size, o.hidden_size}, deviation);
  positions_ =
      make.weight("bert.embeddings.position_embeddings", {o.max_position_embeddings, o.hidden_size}, deviation);
  types_ = make.weight("bert.embeddings.token_type_embeddings", {o.type_vocab_size, o.hidden_size}, deviation);
  embedding_norm_ = make.norm("bert.embeddings.LayerNorm", o.hidden_size, kEpsilon);
  for (int64_t i = 0; i < o.num_layers; ++i)
    blocks_.push_back(make_block(make, fmt::format("bert.encoder.layer.{}.", i)));
  pooler_ = make.affine("bert.pooler.dense", square, kLayout, deviation);
  if (o.num_classes) {
    classifier_ = make.affine("classifier", {o.hidden_size, *o.num_classes}, kLayout, deviation);
    return;
  }
  head_bias_ = make.zeros("cls.predictions.bias", o.vocab_size);
  head_ = make.affine("cls.predictions.transform.dense", square, kLayout, deviation);
  head_norm_ = make.norm("cls.predictions.transform.LayerNorm", o.hidden_size, kEpsilon);
  next_ = make.affine("cls.seq_relationship", {o.hidden_size, 2}, kLayout, deviation);
}

Encoder::Block Encoder::make_block(PartMaker& make, const std::string& path) {
  const double deviation = options_.initializer_range;
  const int64_t width = options_.hidden_size, inner = options_.ffn_hidden_size;
  const auto affine = [&](const char* name, const AffineSize& size) {
    return make.affine(path + name, size, kLayout, deviation);
  };
  Block block;
  block.query = affine("attention.self.query", {width, width});
  block.key = affine("attention.self.key", {width, width});
  block.value = affine("attention.self.value", {width, width});
  block.attention_out = affine("attention.output.dense", {width, width});
  block.attention_norm = make.norm(path + "attention.output.LayerNorm", width, kEpsilon);
  block.feed = affine("intermediate.dense", {width, inner});
  block.feed_out = affine("output.dense", {inner, width});
  block.feed_norm = make.norm(path + "output.LayerNorm", width, kEpsilon);
  return block;
}

torch::Tensor Encoder::hidden(const Sequences& inputs) {
  const int64_t length = inputs.tokens.size(1);
  ASSAY_CHECK(length <= options_.max_position_embeddings,
              fmt::format("a sequence of {} tokens; the model has {} positions", length, positions_.size(0)));
  const double dropout = is_training() ? options_.hidden_dropout_prob : 0;
  // In pre-training the table is the last layer of the language head too, whose dense gradient takes in this sparse
  // one; dense ones would be two passes over all of it.
  const torch::Tensor embedded =
      torch::embedding(tokens_, inputs.tokens, /*padding_idx=*/-1,
                       /*scale_grad_by_freq=*/false, /*sparse=*/is_training() && !options_.num_classes);
  const torch::Tensor sum = embedded + positions_.narrow(0, 0, length) + torch::embedding(types_, inputs.types);
  torch::Tensor x = torch::dropout(layer_norm(sum, embedding_norm_), dropout, dropout > 0);
  const AttentionOptions attends{.num_heads = options_.num_attention_heads,
                                 .causal = false,
                                 .key_mask = inputs.mask.ne(0),
                                 .dropout = is_training() ? options_.attention_probs_dropout_prob : 0};
  for (const Block& block : blocks_) {
    const auto run = [this, &block, attends](const TensorList& in) {
      return TensorList{run_block(block, in[0], attends)};
    };
    x = (options_.recomputes == Recomputes::Blocks ? recompute(run, {x}) : run({x}))[0];
  }
  return x;
}

torch::Tensor Encoder::run_block(const Block& b, const torch::Tensor& x, const AttentionOptions& attends) const {
  const double dropout = is_training() ? options_.hidden_dropout_prob : 0;
  const auto attend = [&b, attends](const TensorList& in) {
    return TensorList{attention(linear3(in[0], b.query.weight, b.key.weight, b.value.weight),
                                torch::cat({b.query.bias, b.key.bias, b.value.bias}), attends)};
  };
  const torch::Tensor seen = (options_.recomputes == Recomputes::Attention ? recompute(attend, {x}) : attend({x}))[0];
  const torch::Tensor middle =
      residual_norm(x, {linear(seen, b.attention_out.weight, kLayout), b.attention_out.bias, dropout}, b.attention_norm)
          .normed;
  const torch::Tensor wide = linear(middle, b.feed.weight, kLayout);
  const torch::Tensor fed = gelu_linear(wide, b.feed.bias, Gelu::Erf, b.feed_out.weight, kLayout);
  return residual_norm(middle, {fed, b.feed_out.bias, dropout}, b.feed_norm).normed;
}

torch::Tensor Encoder::transformed(const torch::Tensor& rows) {
  return layer_norm(bias_gelu(linear(rows, head_.weight, kLayout), head_.bias, Gelu::Erf), head_norm_);
}

torch::Tensor Encoder::language_logits(const torch::Tensor& hidden) {
  return linear(transformed(hidden), tokens_, kLayout) + head_bias_;
}

torch::Tensor Encoder::pooled_logits(const torch::Tensor& hidden, const Affine& head) {
  const torch::Tensor pooled = torch::linear(hidden.select(1, 0), pooler_.weight, pooler_.bias).tanh();
  // As published: only what classifies texts has dropout here.
  const double dropout = is_training() && options_.num_classes ? options_.hidden_dropout_prob : 0;
  return torch::linear(torch::dropout(pooled, dropout, dropout > 0), head.weight, head.bias);
}

torch::Tensor Encoder::forward(const TensorList& inputs) {
  const torch::Tensor x = hidden({inputs.at(0), inputs.at(1), inputs.at(2)});
  return options_.num_classes ? pooled_logits(x, classifier_) : language_logits(x);
}

Encoder::Answers Encoder::answers(const Sequences& inputs) {
  const torch::Tensor x = hidden(inputs);
  return {language_logits(x), pooled_logits(x, next_)};
}

torch::Tensor Encoder::loss(const Sequences& inputs, const torch::Tensor& masked, const torch::Tensor& next) {
  const torch::Tensor x = hidden(inputs);
  const torch::Tensor labels = masked.flatten();
  const torch::Tensor positions = labels.ne(kIgnoredLabel).nonzero().squeeze(1);
  const torch::Tensor language =
      linear_cross_entropy(transformed(x.flatten(0, 1).index_select(0, positions)),
                           {.weight = tokens_, .bias = head_bias_}, labels.index_select(0, positions));
  return language + torch::nn::functional::cross_entropy(pooled_logits(x, next_), next);
}

}  // namespace assay::bert
