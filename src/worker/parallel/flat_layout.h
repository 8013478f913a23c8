// Parameters one after the other in one flat piece of memory, which is reduced, gathered and cut into equal parts
// without looking at them.
#pragma once

#include <string>
#include <vector>

#include "engine/optimizer/optimizer.h"

namespace assay {

class FlatLayout {
 public:
  struct Item {
    std::string name;
    torch::Tensor parameter;
    int64_t begin = 0;  // elements
    int64_t count = 0;
  };
  // The parameters must be dense and of one type. The size becomes a multiple of `num_parts` cache lines.
  FlatLayout(const NamedTensors& parameters, int64_t num_parts);

  const std::vector<Item>& items() const { return items_; }
  int64_t size() const { return size_; }  // elements
  int64_t num_bytes() const { return size_ * static_cast<int64_t>(c10::elementSize(type_)); }
  torch::ScalarType type() const { return type_; }
  // An item inside a flat tensor of size(), in the parameter's own shape and order of memory.
  torch::Tensor view(size_t item, const torch::Tensor& flat) const;

  // The elements of an item that lie in part `part` of `num_parts`.
  struct Overlap {
    size_t item;
    int64_t begin, end;  // in the flat memory
  };
  std::vector<Overlap> overlaps(int64_t part) const;
  int64_t part_size() const { return size_ / num_parts_; }

 private:
  std::vector<Item> items_;
  int64_t num_parts_ = 1;
  int64_t size_ = 0;
  torch::ScalarType type_ = torch::kFloat;
};

// Parameters in the order in which gradients become ready, the last ones first, in groups of about so many bytes.
std::vector<NamedTensors> group_by_size(const NamedTensors& parameters, int64_t num_bytes);

}  // namespace assay
