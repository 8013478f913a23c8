// Memory for time: a part of a network whose activations are not kept for the backward pass but computed again there.
// Gradients are bitwise those of the plain call, dropout included: the second pass draws the same random numbers.
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

namespace assay {

using RecomputedPart = std::function<std::vector<torch::Tensor>(const std::vector<torch::Tensor>&)>;

// part(inputs), which must depend on nothing but its inputs, parameters and the random generator. Inputs may be
// integers or need no gradient. What the part changes in passing, such as statistics of batch normalisation, it must
// change in the first pass only. Without gradients (evaluation, export) it is a plain call.
std::vector<torch::Tensor> recompute(const RecomputedPart& part, const std::vector<torch::Tensor>& inputs);

bool is_recomputing();  // the calling thread is in a second pass

}  // namespace assay
