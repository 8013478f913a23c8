#include "parallel/weight_parts.h"

namespace assay {

torch::Tensor cut_part(const torch::Tensor& whole, const WeightSplit& split, int64_t rank, int64_t size) {
  std::vector<torch::Tensor> pieces;
  for (const torch::Tensor& group : whole.chunk(split.groups, split.dim)) {
    const PartRange range = part_range(group.size(split.dim), rank, size);
    pieces.push_back(group.narrow(split.dim, range.begin, range.count()));
  }
  const torch::Tensor part = pieces.size() == 1 ? pieces[0] : torch::cat(pieces, split.dim);
  return part.contiguous(whole.suggest_memory_format()).clone();
}

torch::Tensor join_parts(const std::vector<torch::Tensor>& parts, const WeightSplit& split) {
  std::vector<torch::Tensor> pieces;
  for (int64_t group = 0; group < split.groups; ++group) {
    for (const torch::Tensor& part : parts) {
      const int64_t extent = part.size(split.dim) / split.groups;
      pieces.push_back(part.narrow(split.dim, group * extent, extent));
    }
  }
  return torch::cat(pieces, split.dim);
}

std::vector<int64_t> part_shape(std::vector<int64_t> whole, const WeightSplit& split, int64_t rank, int64_t size) {
  int64_t& extent = whole.at(static_cast<size_t>(split.dim));
  extent = part_range(extent / split.groups, rank, size).count() * split.groups;
  return whole;
}

}  // namespace assay
