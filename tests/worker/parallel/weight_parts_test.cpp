#include "parallel/weight_parts.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

namespace assay {
namespace {

TEST(WeightParts, MakesTheWholeOfItsParts) {
  torch::manual_seed(1);
  const torch::Tensor image_weight = torch::randn({6, 4, 3, 3}).contiguous(torch::MemoryFormat::ChannelsLast);
  const struct {
    torch::Tensor whole;
    WeightSplit split;
  } cases[] = {{torch::randn({12, 5}), {"rows", 0}},
               {torch::randn({5, 12}), {"columns", 1}},
               {torch::randn({5, 18}), {"q, k, v", 1, 3}},
               {torch::randn({18}), {"their bias", 0, 3}},
               {torch::randn({7, 3}), {"uneven rows", 0}},
               {image_weight, {"outputs", 0}},
               {image_weight, {"inputs", 1}}};
  for (const auto& c : cases) {
    for (int64_t size = 1; size <= 3; ++size) {
      std::vector<torch::Tensor> parts;
      for (int64_t rank = 0; rank < size; ++rank) {
        parts.push_back(cut_part(c.whole, c.split, rank, size));
        EXPECT_EQ(parts.back().sizes().vec(), part_shape(c.whole.sizes().vec(), c.split, rank, size));
        EXPECT_EQ(parts.back().suggest_memory_format(), c.whole.suggest_memory_format());
      }
      EXPECT_TRUE(join_parts(parts, c.split).equal(c.whole)) << c.split.name << " of " << size;
    }
  }
}

// A head's query, key and value must come to the same process.
TEST(WeightParts, SplitsEachGroup) {
  const torch::Tensor whole = torch::arange(12);  // q 0..3, k 4..7, v 8..11
  const WeightSplit split{"qkv", 0, 3};
  EXPECT_TRUE(cut_part(whole, split, 0, 2).equal(torch::tensor({0, 1, 4, 5, 8, 9})));
  EXPECT_TRUE(cut_part(whole, split, 1, 2).equal(torch::tensor({2, 3, 6, 7, 10, 11})));
}

}  // namespace
}  // namespace assay
