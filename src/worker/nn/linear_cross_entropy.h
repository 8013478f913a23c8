// The last layer of a language model and its loss in one operator: the mean cross entropy of logits x W^T + b, whose
// gradients are made a group of rows at a time, so that the logits of all rows never exist at once and those of a group
// exist once.
//
// Shapes: N rows, D model, V vocabulary.
#pragma once

#include <torch/types.h>

namespace assay {

inline constexpr int64_t kIgnoredLabel = -100;  // PyTorch's

struct VocabularyLayer {
  torch::Tensor weight;  // [V, D]
  torch::Tensor bias;    // [V]; undefined: none
};

// Throws DataError when one of the labels, of which none is to be ignored, is not a class.
void check_labels(const torch::Tensor& label, int64_t num_classes);

// x [N, D], label [N] int64: a class, or kIgnoredLabel for rows that do not count. The mean is over the rows that count
// and NaN when none does, as PyTorch's. Throws DataError when a label is not a class. Without gradients wanted, and
// wherever fused operators cannot be used, the same from libtorch's operators.
torch::Tensor linear_cross_entropy(const torch::Tensor& x, const VocabularyLayer& layer, const torch::Tensor& label);

}  // namespace assay
