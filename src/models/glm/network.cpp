#include "models/glm/network.h"

#include <fmt/format.h>

#include "base/error.h"
#include "nn/linear_cross_entropy.h"

namespace assay::glm {

Transformer::Transformer(const Options& o) : options_(o) {
  PartMaker make(*this);
  const auto table = [&](const char* name, int64_t rows) {
    return make.weight(name, {rows, o.hidden_size}, o.initializer_range);
  };
  tokens_ = table("word_embeddings", o.vocab_size);
  positions_ = table("transformer.position_embeddings", o.max_position_embeddings + 1);
  span_positions_ = table("transformer.block_position_embeddings", o.max_position_embeddings + 1);
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

torch::Tensor Transformer::hidden(const Blanks& inputs) {
  const int64_t length = inputs.tokens.size(1);
  ASSAY_CHECK(
      length <= options_.max_position_embeddings,
      fmt::format("a sequence of {} tokens; the model has {} positions", length, options_.max_position_embeddings));
  // The table is the last layer too, whose dense gradient takes in this sparse one.
  const torch::Tensor embedded = torch::embedding(tokens_, inputs.tokens, /*padding_idx=*/-1,
                                                  /*scale_grad_by_freq=*/false, /*sparse=*/is_training());
  const torch::Tensor placed = torch::embedding(positions_, inputs.positions.select(1, 0)) +
                               torch::embedding(span_positions_, inputs.positions.select(1, 1));
  return blocks_->run(embedded + placed, {.causal = true, .prefix = inputs.text}, is_training());
}

torch::Tensor Transformer::forward(const TensorList& inputs) {
  return linear(hidden({inputs.at(0), inputs.at(1), inputs.at(2)}), tokens_, WeightLayout::OutIn);
}

torch::Tensor Transformer::loss(const Blanks& inputs, const torch::Tensor& labels) {
  const torch::Tensor flat = labels.flatten();
  const torch::Tensor counting = flat.ne(kIgnoredLabel).nonzero().squeeze(1);
  return linear_cross_entropy(hidden(inputs).flatten(0, 1).index_select(0, counting), {.weight = tokens_, .bias = {}},
                              flat.index_select(0, counting));
}

}  // namespace assay::glm
