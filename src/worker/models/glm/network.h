// The network of GLM (Du et al. 2021), autoregressive blank infilling: a text with blanks, of which every token sees
// all, and behind it the spans that were cut out, each token of which sees the text and what was infilled before it. A
// token has two positions: in the text with blanks, and inside its span. Parameter names are those of the published
// checkpoints.
//
// Shapes: B batch, T sequence, D hidden_size, V vocab_size.
#pragma once

#include "models/common/tied_transformer.h"
#include "nn/rotary.h"

namespace assay::glm {

// How a token's two positions come in: as rows of two learned tables added to it, as published first, or as rotations
// of a half of each head's width each, as in the later ChatGLM, which makes positions relative.
enum class PositionKind { Learned, Rotary };

// The defaults are GLM base.
struct Options : TransformerOptions {
  PositionKind positions = PositionKind::Learned;
  Options() {
    vocab_size = 30592;
    max_position_embeddings = sequence_length = 512;
  }
};

// What the network reads, all int64: tokens [B, T]; positions [B, 2, T], in the text with blanks, and inside the span,
// 0 outside of spans; text [B], the number of tokens of the text with blanks, which come first.
class Transformer final : public TiedTransformer {
 public:
  // {tokens, positions, text} -> logits [B, T, V].
  explicit Transformer(const Options& options);
  // Tokens whose label does not count do not go through the last layer: most of them.
  torch::Tensor loss(const TensorList& stream, const torch::Tensor& labels) override;
  std::vector<std::string> whole_sequence_parameters() const override;

 private:
  // Rotary: a third of the heads begin by looking at the token left of a blank, a third at the one right of it. Nothing
  // else leads from the start of a span to its neighbours, and heads that begin at random take long to find them.
  void look_beside_blanks();
  PreNormBlocks::Pass pass(const TensorList& inputs) const override;
  torch::Tensor add_positions(const torch::Tensor& embedded, const TensorList& inputs) const override;

  Options options_;
  torch::Tensor positions_, span_positions_;  // learned: [max_position_embeddings + 1, D]
  Rotations rotations_;                       // rotary: of half a head's width
};

}  // namespace assay::glm
