#include "parallel/flat_layout.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

namespace assay {
namespace {

NamedTensors some_parameters() {
  return {{"a", torch::randn({3, 5})},
          {"b", torch::randn({2, 3, 3, 3}).contiguous(torch::MemoryFormat::ChannelsLast)},
          {"c", torch::randn({7})}};
}

TEST(FlatLayout, KeepsTheMemoryOrderOfParametersInViews) {
  torch::manual_seed(1);
  const NamedTensors parameters = some_parameters();
  const FlatLayout layout(parameters, 4);
  const torch::Tensor flat = torch::zeros({layout.size()});
  for (size_t i = 0; i < parameters.size(); ++i) layout.view(i, flat).copy_(parameters[i].second);
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(layout.view(i, flat).equal(parameters[i].second));
    EXPECT_EQ(layout.view(i, flat).strides(), parameters[i].second.strides());
  }
  EXPECT_EQ(layout.size() % 4, 0);
}

TEST(FlatLayout, CoversEveryElementOnceByParts) {
  const NamedTensors parameters = some_parameters();
  for (int64_t num_parts = 1; num_parts <= 5; ++num_parts) {
    const FlatLayout layout(parameters, num_parts);
    EXPECT_EQ(layout.part_size() * num_parts, layout.size());
    std::vector<int64_t> covered(parameters.size(), 0);
    for (int64_t part = 0; part < num_parts; ++part) {
      for (const FlatLayout::Overlap& o : layout.overlaps(part)) {
        EXPECT_GE(o.begin, part * layout.part_size());
        EXPECT_LE(o.end, (part + 1) * layout.part_size());
        covered[o.item] += o.end - o.begin;
      }
    }
    for (size_t i = 0; i < parameters.size(); ++i) EXPECT_EQ(covered[i], parameters[i].second.numel());
  }
}

// Gradients of the last layers come first.
TEST(FlatLayout, StartsGroupsWithTheLastParameters) {
  const NamedTensors parameters = some_parameters();
  const std::vector<NamedTensors> groups = group_by_size(parameters, 100);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0][0].first, "c");
  EXPECT_EQ(groups[0][1].first, "b");
  EXPECT_EQ(groups[1][0].first, "a");
}

}  // namespace
}  // namespace assay
