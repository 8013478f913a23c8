#include "models/glm/network.h"

#include <fmt/format.h>

#include <cmath>

#include "nn/linear_cross_entropy.h"

namespace assay::glm {

namespace {

constexpr char kTokens[] = "word_embeddings";
constexpr char kPositions[] = "transformer.position_embeddings";
constexpr char kSpanPositions[] = "transformer.block_position_embeddings";
constexpr char kBlocks[] = "transformer.layers";
constexpr char kAttention[] = "attention.query_key_value";
constexpr double kRotationBase = 10'000;  // of ChatGLM
constexpr double kFirstBias = 3;  // large enough that a head which looks at one place begins by seeing little else

}  // namespace

Transformer::Transformer(const Options& o) : TiedTransformer(o, kTokens), options_(o) {
  PartMaker make(*this);
  make_table(make);
  const int64_t num_positions = o.max_position_embeddings + 1;
  if (o.positions == PositionKind::Rotary) {
    rotations_ = Rotations(o.hidden_size / o.num_attention_heads / 2, num_positions, kRotationBase);
  } else {
    positions_ = make.weight(kPositions, {num_positions, o.hidden_size}, o.initializer_range);
    span_positions_ = make.weight(kSpanPositions, {num_positions, o.hidden_size}, o.initializer_range);
  }
  make_blocks(make,
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

PreNormBlocks::Pass Transformer::pass(const TensorList& inputs) const {
  AttentionOptions seen{.causal = true, .prefix = inputs.at(2)};
  if (options_.positions == PositionKind::Rotary) seen.rotation = rotations_.at(inputs.at(1), table());
  return {.seen = std::move(seen), .training = is_training(), .parallel = tensor_parallel()};
}

torch::Tensor Transformer::add_positions(const torch::Tensor& embedded, const TensorList& inputs) const {
  if (options_.positions == PositionKind::Rotary) return embedded;
  const torch::Tensor& positions = inputs.at(1);
  const torch::Tensor added =
      torch::embedding(positions_, positions.select(1, 0)) + torch::embedding(span_positions_, positions.select(1, 1));
  return embedded + added;
}

torch::Tensor Transformer::loss(const TensorList& stream, const torch::Tensor& labels) {
  const torch::Tensor flat = labels.flatten();
  const torch::Tensor counting = flat.ne(kIgnoredLabel).nonzero().squeeze(1);
  const torch::Tensor hidden = tensor_parallel().enter(stream.at(1)).flatten(0, 1).index_select(0, counting);
  return loss_of(hidden, flat.index_select(0, counting));
}

std::vector<std::string> Transformer::whole_sequence_parameters() const {
  if (options_.positions == PositionKind::Rotary) return {};
  return {std::string(kPositions) + ".weight", std::string(kSpanPositions) + ".weight"};
}

}  // namespace assay::glm
