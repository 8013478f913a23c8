#include "models/glm/network.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "nn/linear_cross_entropy.h"

namespace assay::glm {

namespace {

constexpr char kBlocks[] = "transformer.layers";
constexpr char kAttention[] = "attention.query_key_value";
constexpr double kRotationBase = 10'000;  // of ChatGLM
constexpr double kFirstBias = 3;  // large enough that a head which looks at one place begins by seeing little else

}  // namespace

Transformer::Transformer(const Options& o) : options_(o) {
  PartMaker make(*this);
  const auto table = [&](const char* name, int64_t rows) {
    return make.weight(name, {rows, o.hidden_size}, o.initializer_range);
  };
  tokens_ = table("word_embeddings", o.vocab_size);
  const int64_t num_positions = o.max_position_embeddings + 1;
  if (o.positions == PositionKind::Rotary) {
    rotations_ = Rotations(o.hidden_size / o.num_attention_heads / 2, num_positions, kRotationBase);
  } else {
    positions_ = table("transformer.position_embeddings", num_positions);
    span_positions_ = table("transformer.block_position_embeddings", num_positions);
  }
  blocks_.emplace(make, o,
                  BlockNames{.path = kBlocks,
                             .first_norm = "input_layernorm",
                             .attention = kAttention,
                             .attention_out = "attention.dense",
                             .second_norm = "post_attention_layernorm",
                             .feed = "mlp.dense_h_to_4h",
                             .feed_out = "mlp.dense_4h_to_h",
                             .last_norm = "transformer.final_layernorm"},
                  WeightLayout::OutIn);
  if (o.positions == PositionKind::Rotary) look_beside_blanks();
}

// What a token's query and key have in common with all others of a head is their bias. Where the two biases are the
// same but for a rotation by one position, the head looks one token to the left or right.
void Transformer::look_beside_blanks() {
  const torch::NoGradGuard no_grad;
  const int64_t heads = options_.num_attention_heads, pairs = options_.hidden_size / heads / 4;
  const int64_t fast = pairs / 4;  // the pairs whose angles tell neighbours apart
  const torch::Tensor angles =
      torch::exp(torch::arange(fast, torch::kDouble) * (-std::log(kRotationBase) / static_cast<double>(pairs)));
  const auto parameters = named_parameters();
  for (int64_t i = 0; i < options_.num_layers; ++i) {
    const torch::Tensor bias = parameters[fmt::format("{}.{}.{}.bias", kBlocks, i, kAttention)];
    if (bias.is_meta()) return;                                      // only sizes are asked for
    const torch::Tensor parts = bias.view({3, heads, 2, 2, pairs});  // query, key, value; head; position; low, high
    parts[1].select(2, 0).fill_(kFirstBias);
    for (int64_t head = 0; head < heads / 3 * 2; ++head) {
      const double offset = head < heads / 3 ? 1 : -1;
      parts[0][head][0][0].narrow(0, 0, fast).copy_(kFirstBias * torch::cos(offset * angles));
      parts[0][head][0][1].narrow(0, 0, fast).copy_(-kFirstBias * torch::sin(offset * angles));
    }
  }
}

torch::Tensor Transformer::hidden(const Blanks& inputs) {
  const int64_t length = inputs.tokens.size(1);
  ASSAY_CHECK(
      length <= options_.max_position_embeddings,
      fmt::format("a sequence of {} tokens; the model has {} positions", length, options_.max_position_embeddings));
  // The table is the last layer too, whose dense gradient takes in this sparse one.
  const torch::Tensor embedded = torch::embedding(tokens_, inputs.tokens, /*padding_idx=*/-1,
                                                  /*scale_grad_by_freq=*/false, /*sparse=*/is_training());
  if (options_.positions == PositionKind::Rotary) {
    const AttentionOptions seen{
        .causal = true, .prefix = inputs.text, .rotation = rotations_.at(inputs.positions, embedded)};
    return blocks_->run(embedded, seen, is_training());
  }
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
