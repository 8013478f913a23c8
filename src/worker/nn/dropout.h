// Dropout as an operator of its own, with the masks of the fused operators: where these cannot run, the same elements
// are dropped.
#pragma once

#include <torch/types.h>

namespace assay {

// x with elements that became 0 with this probability, the others divided by the probability to stay. x as rows of its
// last dimension gets the mask that draw_dropout() (nn/fused.h) draws: one seed of the generator, whatever x is, and
// another mask for another stream. The caller passes 0, for which nothing is drawn, in evaluation.
torch::Tensor apply_dropout(const torch::Tensor& x, double probability, uint64_t stream);

}  // namespace assay
