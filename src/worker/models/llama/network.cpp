#include "models/llama/network.h"

#include <fmt/format.h>

#include "base/error.h"
#include "nn/attention.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/linear_cross_entropy.h"
#include "nn/recompute.h"

namespace assay::llama {

namespace {

constexpr auto kLayout = WeightLayout::OutIn;

}  // namespace

Transformer::Transformer(const Options& o)
    : options_(o), rotations_(o.hidden_size / o.num_attention_heads, o.max_position_embeddings, o.rope_theta) {
  PartMaker make(*this);
  const int64_t width = o.hidden_size, inner = o.ffn_hidden_size;
  const int64_t shared = width / o.num_attention_heads * o.num_key_value_heads;
  const auto weight = [&](const std::string& path, int64_t out, int64_t in) {
    return make.weight(path, {out, in}, o.initializer_range);
  };
  tokens_ = weight("model.embed_tokens", o.vocab_size, width);
  for (int64_t i = 0; i < o.num_layers; ++i) {
    const std::string at = fmt::format("model.layers.{}.", i);
    Block block;
    block.query = weight(at + "self_attn.q_proj", width, width);
    block.key = weight(at + "self_attn.k_proj", shared, width);
    block.value = weight(at + "self_attn.v_proj", shared, width);
    block.attention_out = weight(at + "self_attn.o_proj", width, width);
    block.gate = weight(at + "mlp.gate_proj", inner, width);
    block.up = weight(at + "mlp.up_proj", inner, width);
    block.down = weight(at + "mlp.down_proj", width, inner);
    block.attention_norm = make.ones(at + "input_layernorm", width);
    block.feed_norm = make.ones(at + "post_attention_layernorm", width);
    blocks_.push_back(std::move(block));
  }
  norm_ = make.ones("model.norm", width);
  head_ = o.tie_word_embeddings ? tokens_ : weight("lm_head", o.vocab_size, width);
}

torch::Tensor Transformer::dropped(const torch::Tensor& x, uint64_t stream) const {
  return apply_dropout(x, is_training() ? options_.hidden_dropout_prob : 0, stream);
}

TensorList Transformer::run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) {
  if (index > 0) {
    const Block& block = blocks_[static_cast<size_t>(index) - 1];
    const auto run = [this, &block](const TensorList& in) { return TensorList{run_block(block, in[0])}; };
    return options_.recomputes == Recomputes::Blocks ? recompute(run, stream) : run(stream);
  }
  const torch::Tensor& tokens = inputs.at(0);
  ASSAY_CHECK(tokens.size(1) <= options_.max_position_embeddings,
              fmt::format("a sequence of {} tokens; the model has {} positions", tokens.size(1),
                          options_.max_position_embeddings));
  // A tied table gets a dense gradient as the last layer, which takes in this sparse one.
  const torch::Tensor embedded =
      tensor_parallel().embedding(tokens_, options_.vocab_size, tokens,
                                  /*sparse=*/is_training() && options_.tie_word_embeddings && can_be_sparse(tokens_));
  return {tensor_parallel().split_sequence(dropped(embedded, /*stream=*/0))};
}

torch::Tensor Transformer::hidden(const TensorList& stream) const {
  return tensor_parallel().enter(rms_norm(stream.at(0), norm_, options_.rms_norm_eps));
}

Transformer::Heads Transformer::heads_of(const Block& b, const torch::Tensor& normed, int64_t first) const {
  const int64_t head_width = options_.hidden_size / options_.num_attention_heads;
  const auto project = [&](const torch::Tensor& weight, int64_t num_heads) {
    return linear(normed, weight, kLayout).unflatten(-1, {num_heads, head_width});
  };
  const int64_t processes = tensor_parallel().size();
  const int64_t own_heads = options_.num_attention_heads / processes,
                own_keys = options_.num_key_value_heads / processes;
  return {rotations_.rotate(project(b.query, own_heads), first), rotations_.rotate(project(b.key, own_keys), first),
          project(b.value, own_keys)};
}

torch::Tensor Transformer::attend(const Block& b, const torch::Tensor& normed) const {
  const Heads heads = heads_of(b, tensor_parallel().enter(normed), 0);
  // The fused attention wants a key and a value for every query.
  const int64_t sharing = options_.num_attention_heads / options_.num_key_value_heads;
  const auto for_all = [&](const torch::Tensor& x) {
    return sharing == 1 ? x : x.unsqueeze(3).expand({-1, -1, -1, sharing, -1}).flatten(2, 3);
  };
  const torch::Tensor qkv =
      torch::cat({heads.query.flatten(2), for_all(heads.key).flatten(2), for_all(heads.value).flatten(2)}, /*dim=*/2);
  const torch::Tensor no_bias = torch::zeros({qkv.size(2)}, qkv.options());
  return attention(qkv, no_bias,
                   {.num_heads = options_.num_attention_heads / tensor_parallel().size(),
                    .causal = true,
                    .key_mask = {},
                    .dropout = is_training() ? options_.attention_probs_dropout_prob : 0,
                    .dropout_stream = tensor_parallel().dropout_stream()});
}

torch::Tensor Transformer::feed(const Block& b, const torch::Tensor& x) const {
  const torch::Tensor normed = tensor_parallel().enter(rms_norm(x, b.feed_norm, options_.rms_norm_eps));
  const torch::Tensor gated = torch::silu(linear(normed, b.gate, kLayout)) * linear(normed, b.up, kLayout);
  return tensor_parallel().leave(linear(gated, b.down, kLayout));
}

torch::Tensor Transformer::run_block(const Block& b, const torch::Tensor& x) const {
  const auto run = [this, &b](const TensorList& in) { return TensorList{attend(b, in[0])}; };
  const torch::Tensor normed = rms_norm(x, b.attention_norm, options_.rms_norm_eps);
  const torch::Tensor seen =
      (options_.recomputes == Recomputes::Attention ? recompute(run, {normed}) : run({normed}))[0];
  // What is computed alike everywhere drops alike; parts of a sequence do not.
  const uint64_t stream = tensor_parallel().splits_sequence() ? tensor_parallel().dropout_stream() : 0;
  const torch::Tensor middle = x + dropped(tensor_parallel().leave(linear(seen, b.attention_out, kLayout)), stream);
  return middle + dropped(feed(b, middle), stream);
}

KvCache Transformer::make_cache(int64_t batch) const {
  return KvCache({.num_layers = options_.num_layers,
                  .batch = batch,
                  .num_heads = options_.num_key_value_heads,
                  .head_width = options_.hidden_size / options_.num_attention_heads,
                  .capacity = options_.max_position_embeddings},
                 tokens_.options());
}

torch::Tensor Transformer::decode(const torch::Tensor& tokens, KvCache& cache) {
  ASSAY_CHECK(cache.length() + tokens.size(1) <= cache.capacity(), "more tokens than the model has positions");
  torch::Tensor x = torch::embedding(tokens_, tokens);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& b = blocks_[i];
    const Heads heads = heads_of(b, rms_norm(x, b.attention_norm, options_.rms_norm_eps), cache.length());
    x = x + linear(cache.attend(i, heads.query, heads.key, heads.value), b.attention_out, kLayout);
    x = x + feed(b, x);
  }
  cache.advance(tokens.size(1));
  return linear(rms_norm(x.select(1, -1), norm_, options_.rms_norm_eps), head_, kLayout);
}

torch::Tensor Transformer::output(const TensorList& stream) {
  return tensor_parallel().join_outputs(linear(hidden(stream), head_, kLayout), options_.vocab_size);
}

torch::Tensor Transformer::loss(const TensorList& stream, const torch::Tensor& labels) {
  return tensor_parallel().linear_cross_entropy(hidden(stream).flatten(0, 1), {.weight = head_, .bias = {}},
                                                options_.vocab_size, labels.flatten());
}

std::string Transformer::head_name() const {
  return options_.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight";
}

std::vector<std::string> Transformer::segment_parameters(int64_t index) const {
  std::vector<std::string> names;
  if (index == 0) names.push_back("model.embed_tokens.weight");
  if (index > 0) {
    for (const char* layer :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
          "mlp.up_proj", "mlp.down_proj", "input_layernorm", "post_attention_layernorm"}) {
      names.push_back(fmt::format("model.layers.{}.{}.weight", index - 1, layer));
    }
  }
  if (index + 1 == num_segments()) names.insert(names.end(), {"model.norm.weight", head_name()});
  return names;
}

std::vector<WeightSplit> Transformer::weight_splits() const {
  std::vector<WeightSplit> splits = {{"model.embed_tokens.weight", 0}};
  if (!options_.tie_word_embeddings) splits.push_back({head_name(), 0});
  for (int64_t i = 0; i < options_.num_layers; ++i) {
    const auto split = [&](const char* layer, int64_t dim) {
      splits.push_back({fmt::format("model.layers.{}.{}.weight", i, layer), dim});
    };
    for (const char* layer : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}) split(layer, 0);
    for (const char* layer : {"mlp.gate_proj", "mlp.up_proj"}) split(layer, 0);
    for (const char* layer : {"self_attn.o_proj", "mlp.down_proj"}) split(layer, 1);
  }
  return splits;
}

void Transformer::set_tensor_parallel(const TensorParallel& parallel) {
  check_divides(options_, parallel.size());
  if (options_.num_key_value_heads % parallel.size() != 0) {
    throw ConfigError(fmt::format("Model.num_key_value_heads ({}) must be divisible by Distributed.mp_degree ({})",
                                  options_.num_key_value_heads, parallel.size()));
  }
  Network::set_tensor_parallel(parallel);
}

}  // namespace assay::llama
