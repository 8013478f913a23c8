#include "parallel/flat_layout.h"

#include <algorithm>

#include "base/error.h"

namespace assay {

FlatLayout::FlatLayout(const NamedTensors& parameters, int64_t num_parts) : num_parts_(num_parts) {
  ASSAY_CHECK(!parameters.empty(), "a flat layout of nothing");
  type_ = parameters[0].second.scalar_type();
  for (const auto& [name, parameter] : parameters) {
    ASSAY_CHECK(parameter.is_non_overlapping_and_dense() && parameter.scalar_type() == type_, name + " does not fit");
    items_.push_back({name, parameter, size_, parameter.numel()});
    size_ += parameter.numel();
  }
  constexpr int64_t kCacheLine = 64;
  const int64_t unit = num_parts * kCacheLine / static_cast<int64_t>(c10::elementSize(type_));
  size_ = (size_ + unit - 1) / unit * unit;
}

torch::Tensor FlatLayout::view(size_t item, const torch::Tensor& flat) const {
  const Item& i = items_[item];
  return flat.as_strided(i.parameter.sizes(), i.parameter.strides(), flat.storage_offset() + i.begin);
}

std::vector<FlatLayout::Overlap> FlatLayout::overlaps(int64_t part) const {
  std::vector<Overlap> found;
  const int64_t first = part * part_size(), last = first + part_size();
  for (size_t i = 0; i < items_.size(); ++i) {
    const int64_t begin = std::max(first, items_[i].begin);
    const int64_t end = std::min(last, items_[i].begin + items_[i].count);
    if (begin < end) found.push_back({i, begin, end});
  }
  return found;
}

std::vector<NamedTensors> group_by_size(const NamedTensors& parameters, int64_t num_bytes) {
  std::vector<NamedTensors> groups;
  int64_t size = 0;
  for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
    if (groups.empty() || size >= num_bytes) {
      groups.emplace_back();
      size = 0;
    }
    groups.back().push_back(*p);
    size += static_cast<int64_t>(p->second.nbytes());
  }
  return groups;
}

}  // namespace assay
