// Parts of weights: which part of a tensor a tensor-parallel process has, cut from the whole and joined to it again.
#pragma once

#include <vector>

#include "engine/module.h"

namespace assay {

// The part of process `rank` of `size`, in the memory layout of the whole.
torch::Tensor cut_part(const torch::Tensor& whole, const WeightSplit& split, int64_t rank, int64_t size);
// All parts in the order of processes -> the whole.
torch::Tensor join_parts(const std::vector<torch::Tensor>& parts, const WeightSplit& split);
// The shape of a part.
std::vector<int64_t> part_shape(std::vector<int64_t> whole, const WeightSplit& split, int64_t rank, int64_t size);

}  // namespace assay
