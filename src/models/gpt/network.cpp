#include "models/gpt/network.h"

#include <fmt/format.h>

#include "base/error.h"
#include "nn/linear_cross_entropy.h"

namespace assay::gpt {

Transformer::Transformer(const Options& o) : options_(o) {
  PartMaker make(*this);
  tokens_ = make.weight("transformer.wte", {o.vocab_size, o.hidden_size}, o.initializer_range);
  positions_ = make.weight("transformer.wpe", {o.max_position_embeddings, o.hidden_size}, o.initializer_range);
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

torch::Tensor Transformer::hidden(const torch::Tensor& tokens) {
  const int64_t length = tokens.size(1);
  ASSAY_CHECK(length <= options_.max_position_embeddings,
              fmt::format("a sequence of {} tokens; the model has {} positions", length, positions_.size(0)));
  // The table is the last layer too, whose dense gradient takes in this sparse one; dense ones would be two passes over
  // all of it.
  const torch::Tensor embedded = torch::embedding(tokens_, tokens, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false,
                                                  /*sparse=*/is_training());
  return blocks_->run(embedded + positions_.narrow(0, 0, length), {.causal = true}, is_training());
}

KvCache Transformer::make_cache(int64_t batch) const { return blocks_->make_cache(batch); }

torch::Tensor Transformer::decode(const torch::Tensor& tokens, KvCache& cache) {
  const int64_t count = tokens.size(1);
  ASSAY_CHECK(cache.length() + count <= cache.capacity(), "more tokens than the model has positions");
  const torch::Tensor x = torch::embedding(tokens_, tokens) + positions_.narrow(0, cache.length(), count);
  return linear(blocks_->decode(x, cache).select(1, -1), tokens_, WeightLayout::OutIn);
}

torch::Tensor Transformer::forward(const TensorList& inputs) {
  return linear(hidden(inputs.at(0)), tokens_, WeightLayout::OutIn);
}

torch::Tensor Transformer::loss(const torch::Tensor& tokens, const torch::Tensor& labels) {
  return linear_cross_entropy(hidden(tokens).flatten(0, 1), {.weight = tokens_, .bias = {}}, labels.flatten());
}

}  // namespace assay::gpt
