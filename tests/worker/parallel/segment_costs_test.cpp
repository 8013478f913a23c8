#include "parallel/segment_costs.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>

#include "parallel/pipeline_plan.h"

namespace assay {
namespace {

constexpr int64_t kNumSegments = 5;
constexpr int64_t kSlow = 2;

// Layers of one matrix each, of which one is used a hundred times; each counts its passes and draws dropout.
class UnevenNet final : public Network {
 public:
  UnevenNet() {
    for (int64_t i = 0; i < kNumSegments; ++i) {
      weights_.push_back(register_parameter("weight" + std::to_string(i), torch::eye(128)));
    }
    passes_ = register_buffer("passes", torch::zeros({kNumSegments}));
  }
  int64_t num_segments() const override { return kNumSegments; }
  TensorList run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) override {
    torch::Tensor x = index == 0 ? inputs.at(0) : stream.at(0);
    for (int k = 0; k < (index == kSlow ? 100 : 1); ++k) x = x.matmul(weights_[static_cast<size_t>(index)]);
    passes_[index] += 1;
    return {torch::dropout(x, 0.1, is_training())};
  }
  std::vector<std::string> segment_parameters(int64_t index) const override {
    return {"weight" + std::to_string(index)};
  }

 private:
  std::vector<torch::Tensor> weights_;
  torch::Tensor passes_;
};

class UnevenModule final : public Module {
 public:
  UnevenModule() { init(); }
  std::shared_ptr<Network> get_model() override { return std::make_shared<UnevenNet>(); }
  LossFunction get_loss_fn() override { return {}; }
  std::vector<InputSpec> input_spec() const override { return {{"x", torch::kFloat, {-1, 128}, 1}}; }
};

TEST(SegmentCosts, FindsTheSlowSegmentAndLeavesNothingBehind) {
  UnevenModule module;
  module.model().eval();
  torch::manual_seed(4);
  const torch::Tensor next = torch::rand({3});
  torch::manual_seed(4);
  const std::vector<double> costs = seconds_of_segments(module, 64);
  ASSERT_EQ(costs.size(), static_cast<size_t>(kNumSegments));
  EXPECT_EQ(std::max_element(costs.begin(), costs.end()) - costs.begin(), kSlow);
  EXPECT_TRUE(std::all_of(costs.begin(), costs.end(), [](double cost) { return cost > 0 && cost < 60; }));
  // A hundred times the work: three stages give it one of its own.
  EXPECT_EQ(divide_segments(costs, 3), (std::vector<int64_t>{0, kSlow, kSlow + 1, kNumSegments}));
  EXPECT_TRUE(torch::equal(torch::rand({3}), next)) << "the random generator has moved";
  EXPECT_EQ(module.model().buffers()[0].sum().item<double>(), 0);
  for (const torch::Tensor& parameter : module.model().parameters()) {
    EXPECT_FALSE(parameter.grad().defined());
    EXPECT_TRUE(torch::equal(parameter, torch::eye(128)));
  }
  EXPECT_FALSE(module.model().is_training());
}

TEST(SegmentCosts, CountsParameters) {
  UnevenModule module;
  EXPECT_EQ(parameters_of_segments(module.model()), std::vector<double>(kNumSegments, 128 * 128));
}

}  // namespace
}  // namespace assay
