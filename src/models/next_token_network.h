// A network that reads tokens from left to right.
//
// Shapes: B batch, T sequence.
#pragma once

#include "engine/module.h"
#include "models/decoder.h"

namespace assay {

class NextTokenNetwork : public Network, public Decoder {
 public:
  // The mean cross entropy of labels [B, T], the token behind each; -100 does not count. Logits are not kept.
  virtual torch::Tensor loss(const TensorList& stream, const torch::Tensor& labels) = 0;
};

}  // namespace assay
