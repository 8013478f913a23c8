// A network that gives every token of a sequence the logits of a label: the token behind it, or one that was cut out.
//
// Shapes: B batch, T sequence.
#pragma once

#include "engine/module/network.h"

namespace assay {

class TokenNetwork : public Network {
 public:
  // The mean cross entropy of labels [B, T]; -100 does not count. Logits are not kept.
  virtual torch::Tensor loss(const TensorList& stream, const torch::Tensor& labels) = 0;
};

}  // namespace assay
