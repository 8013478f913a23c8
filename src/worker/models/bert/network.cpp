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
constexpr char kTokensWeight[] = "bert.embeddings.word_embeddings.weight";
constexpr char kPositions[] = "bert.embeddings.position_embeddings";
constexpr char kTypes[] = "bert.embeddings.token_type_embeddings";
constexpr char kEmbeddingNorm[] = "bert.embeddings.LayerNorm";
constexpr char kHeadBias[] = "cls.predictions.bias";
constexpr const char* kBlockLayers[] = {
    "attention.self.query",       "attention.self.key", "attention.self.value", "attention.output.dense",
    "attention.output.LayerNorm", "intermediate.dense", "output.dense",         "output.LayerNorm"};

}  // namespace

Encoder::Encoder(const Options& o) : options_(o) {
  PartMaker make(*this);
  const double deviation = o.initializer_range;
  const AffineSize square{o.hidden_size, o.hidden_size};
  tokens_ = make.weight("bert.embeddings.word_embeddings", {o.vocab_size, o.hidden_size}, deviation);
  positions_ = make.weight(kPositions, {o.max_position_embeddings, o.hidden_size}, deviation);
  types_ = make.weight(kTypes, {o.type_vocab_size, o.hidden_size}, deviation);
  embedding_norm_ = make.norm(kEmbeddingNorm, o.hidden_size, kEpsilon);
  for (int64_t i = 0; i < o.num_layers; ++i)
    blocks_.push_back(make_block(make, fmt::format("bert.encoder.layer.{}.", i)));
  pooler_ = make.affine("bert.pooler.dense", square, kLayout, deviation);
  if (o.num_classes) {
    classifier_ = make.affine("classifier", {o.hidden_size, *o.num_classes}, kLayout, deviation);
    return;
  }
  head_bias_ = make.zeros(kHeadBias, o.vocab_size);
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

torch::Tensor Encoder::embed(const TensorList& inputs) {
  const int64_t length = inputs.at(0).size(1);
  ASSAY_CHECK(length <= options_.max_position_embeddings,
              fmt::format("a sequence of {} tokens; the model has {} positions", length, positions_.size(0)));
  const double dropout = is_training() ? options_.hidden_dropout_prob : 0;
  // In pre-training the table is the last layer of the language head too, whose dense gradient takes in this sparse
  // one; dense ones would be two passes over all of it.
  const torch::Tensor embedded =
      tensor_parallel().embedding(tokens_, options_.vocab_size, inputs.at(0),
                                  /*sparse=*/is_training() && !options_.num_classes && can_be_sparse(tokens_));
  const torch::Tensor sum = embedded + positions_.narrow(0, 0, length) + torch::embedding(types_, inputs.at(1));
  return torch::dropout(layer_norm(sum, embedding_norm_), dropout, dropout > 0);
}

TensorList Encoder::run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) {
  if (index == 0) return {tensor_parallel().split_sequence(embed(inputs))};
  const AttentionOptions attends{.num_heads = options_.num_attention_heads / tensor_parallel().size(),
                                 .causal = false,
                                 .key_mask = inputs.at(2).ne(0),
                                 .dropout = is_training() ? options_.attention_probs_dropout_prob : 0,
                                 .dropout_stream = tensor_parallel().dropout_stream()};
  const Block& block = blocks_[static_cast<size_t>(index) - 1];
  const auto run = [this, &block, attends](const TensorList& in) {
    return TensorList{run_block(block, in[0], attends)};
  };
  return options_.recomputes == Recomputes::Blocks ? recompute(run, stream) : run(stream);
}

torch::Tensor Encoder::run_block(const Block& b, const torch::Tensor& x, const AttentionOptions& attends) const {
  const TensorParallel& parallel = tensor_parallel();
  const double dropout = is_training() ? options_.hidden_dropout_prob : 0;
  const uint64_t stream = parallel.splits_sequence() ? parallel.dropout_stream() : 0;
  const auto attend = [&b, &parallel, attends](const TensorList& in) {
    return TensorList{attention(linear3(parallel.enter(in[0]), b.query.weight, b.key.weight, b.value.weight),
                                torch::cat({b.query.bias, b.key.bias, b.value.bias}), attends)};
  };
  const torch::Tensor seen = (options_.recomputes == Recomputes::Attention ? recompute(attend, {x}) : attend({x}))[0];
  const torch::Tensor attended = parallel.leave(linear(seen, b.attention_out.weight, kLayout));
  const torch::Tensor middle =
      residual_norm(x, {attended, b.attention_out.bias, dropout, stream}, b.attention_norm).normed;
  const torch::Tensor wide = linear(parallel.enter(middle), b.feed.weight, kLayout);
  const torch::Tensor fed = parallel.leave(gelu_linear(wide, b.feed.bias, Gelu::Erf, b.feed_out.weight, kLayout));
  return residual_norm(middle, {fed, b.feed_out.bias, dropout, stream}, b.feed_norm).normed;
}

torch::Tensor Encoder::transformed(const torch::Tensor& rows) {
  return layer_norm(bias_gelu(linear(rows, head_.weight, kLayout), head_.bias, Gelu::Erf), head_norm_);
}

torch::Tensor Encoder::language_logits(const torch::Tensor& hidden) {
  const torch::Tensor rows = tensor_parallel().enter_whole(transformed(hidden));
  return tensor_parallel().join_outputs(linear(rows, tokens_, kLayout) + head_bias_, options_.vocab_size);
}

torch::Tensor Encoder::pooled_logits(const torch::Tensor& hidden, const Affine& head) {
  const torch::Tensor pooled = torch::linear(hidden.select(1, 0), pooler_.weight, pooler_.bias).tanh();
  // As published: only what classifies texts has dropout here.
  const double dropout = is_training() && options_.num_classes ? options_.hidden_dropout_prob : 0;
  return torch::linear(torch::dropout(pooled, dropout, dropout > 0), head.weight, head.bias);
}

torch::Tensor Encoder::output(const TensorList& stream) {
  const torch::Tensor x = tensor_parallel().join_sequence(stream.at(0));
  return options_.num_classes ? pooled_logits(x, classifier_) : language_logits(x);
}

Encoder::Answers Encoder::answers(const TensorList& stream) {
  const torch::Tensor x = tensor_parallel().join_sequence(stream.at(0));
  return {language_logits(x), pooled_logits(x, next_)};
}

torch::Tensor Encoder::loss(const TensorList& stream, const torch::Tensor& masked, const torch::Tensor& next) {
  const torch::Tensor x = tensor_parallel().join_sequence(stream.at(0));
  const torch::Tensor labels = masked.flatten();
  const torch::Tensor positions = labels.ne(kIgnoredLabel).nonzero().squeeze(1);
  const torch::Tensor rows = tensor_parallel().enter_whole(transformed(x.flatten(0, 1).index_select(0, positions)));
  const torch::Tensor language = tensor_parallel().linear_cross_entropy(
      rows, {.weight = tokens_, .bias = head_bias_}, options_.vocab_size, labels.index_select(0, positions));
  return language + torch::nn::functional::cross_entropy(pooled_logits(x, next_), next);
}

std::vector<std::string> Encoder::embedding_parameters() const {
  std::vector<std::string> names = with_bias({kEmbeddingNorm});
  for (const char* table : {kPositions, kTypes}) names.push_back(std::string(table) + ".weight");
  return names;
}

std::vector<std::string> Encoder::head_parameters() const {
  std::vector<std::string> names = with_bias({"bert.pooler.dense"});
  const auto add = [&](const std::vector<std::string>& layers) {
    for (const std::string& name : with_bias(layers)) names.push_back(name);
  };
  if (options_.num_classes) {
    add({"classifier"});
  } else {
    add({"cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.seq_relationship"});
  }
  return names;
}

std::vector<std::string> Encoder::segment_parameters(int64_t index) const {
  std::vector<std::string> names;
  if (index == 0) {
    names = embedding_parameters();
    names.push_back(kTokensWeight);
  } else {
    std::vector<std::string> layers;
    for (const char* layer : kBlockLayers) layers.push_back(fmt::format("bert.encoder.layer.{}.{}", index - 1, layer));
    names = with_bias(layers);
  }
  if (index + 1 < num_segments()) return names;
  for (const std::string& name : head_parameters()) names.push_back(name);
  if (!options_.num_classes) names.insert(names.end(), {kTokensWeight, kHeadBias});
  return names;
}

std::vector<WeightSplit> Encoder::weight_splits() const {
  std::vector<WeightSplit> splits = {{kTokensWeight, 0}};
  if (!options_.num_classes) splits.push_back({kHeadBias, 0});
  for (int64_t i = 0; i < options_.num_layers; ++i) {
    const std::string at = fmt::format("bert.encoder.layer.{}.", i);
    for (const char* layer :
         {"attention.self.query", "attention.self.key", "attention.self.value", "intermediate.dense"}) {
      for (const std::string& name : with_bias({at + layer})) splits.push_back({name, 0});
    }
    for (const char* layer : {"attention.output.dense", "output.dense"}) splits.push_back({at + layer + ".weight", 1});
  }
  return splits;
}

std::vector<std::string> Encoder::whole_sequence_parameters() const {
  std::vector<std::string> names = embedding_parameters();
  for (const std::string& name : head_parameters()) names.push_back(name);
  return names;
}

void Encoder::set_tensor_parallel(const TensorParallel& parallel) {
  check_divides(options_, parallel.size());
  Network::set_tensor_parallel(parallel);
}

}  // namespace assay::bert
