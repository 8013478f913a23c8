#include "models/ocr_det/model.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>

#include "../contract_case.h"
#include "models/ocr_det/loss.h"

namespace assay::ocr_det {
namespace {

std::unique_ptr<TextDetection> detector(const Options& options, const BoxOptions& boxes = {}) {
  torch::manual_seed(9);
  auto module = std::make_unique<TextDetection>(options, boxes);
  module->init();
  return module;
}

// Counted by the twin in plain PyTorch: tests/peers/ocr_det.py, count().
TEST(OcrDet, HasThePublishedSizes) {
  const Options mobile;
  EXPECT_EQ(num_parameters(*detector(mobile)), 583'234);
  EXPECT_EQ(multiply_adds(mobile), 2'511'417'600.0);
  const Options wide{.backbone = {.scale = 0.5, .use_se = true}, .neck_channels = 256, .image_size = 640};
  EXPECT_EQ(num_parameters(*detector(wide)), 1'844'136);
  EXPECT_EQ(multiply_adds(wide), 14'197'170'592.0);
  EXPECT_EQ(*detector(wide)->flops_per_sample(), 6 * 14'197'170'592.0);
  const auto parameters = detector(wide)->model().named_parameters();
  EXPECT_EQ(parameters["backbone.stage2.4.mid_se.conv1.weight"].sizes(), at::IntArrayRef({60, 240, 1, 1}));
  EXPECT_EQ(parameters["neck.in5_conv.weight"].sizes(), at::IntArrayRef({256, 480, 1, 1}));
  EXPECT_EQ(parameters["head.thresh.conv3.weight"].sizes(), at::IntArrayRef({64, 1, 2, 2}));
}

TEST(OcrDet, GivesThreeMapsInTrainingAndOneInEvaluation) {
  const auto module = detector({.backbone = {.scale = 0.35}, .neck_channels = 16, .image_size = 64});
  const torch::Tensor image = torch::randn({2, 3, 64, 96});
  const torch::Tensor maps = module->forward({image}).detach();
  EXPECT_EQ(maps.sizes(), at::IntArrayRef({2, 3, 64, 96}));
  const torch::Tensor binary = 1 / (1 + torch::exp(-50 * (maps.select(1, 0) - maps.select(1, 1))));
  EXPECT_TRUE(torch::allclose(maps.select(1, 2), binary, 1e-4, 1e-6));
  module->model().eval();
  EXPECT_EQ(module->forward({image}).sizes(), at::IntArrayRef({2, 1, 64, 96}));
}

// One image of 6 pixels: one in a text, one ignored; of the other four, the three with the largest loss count.
TEST(OcrDet, ComputesTheLossByHand) {
  const auto row = [](const std::vector<double>& values) { return torch::tensor(values).view({1, 1, 1, 6}); };
  const torch::Tensor shrink = row({0.8, 0.3, 0.6, 0.2, 0.1, 0.99});
  const torch::Tensor threshold = row({0.5, 0.4, 0.4, 0.4, 0.4, 0.4});
  const torch::Tensor binary = row({0.9, 0.1, 0.7, 0, 0, 1});
  const torch::Tensor targets = torch::cat(
      {row({1, 0, 0, 0, 0, 0}), row({1, 1, 1, 1, 1, 0}), row({0.7, 0.5, 0.3, 0.3, 0.3, 0.3}), row({1, 1, 0, 0, 0, 0})},
      1);
  const double cross_entropy = -(std::log(0.8) + std::log(0.4) + std::log(0.7) + std::log(0.8)) / 4;
  const double dice = 1 - 2 * 0.9 / (1.7 + 1);
  const double distance = (0.2 + 0.1) / 2;
  EXPECT_NEAR(detection_loss(torch::cat({shrink, threshold, binary}, 1), targets).item<double>(),
              5 * cross_entropy + dice + 10 * distance, 1e-5);
  EXPECT_NEAR(detection_loss(shrink, targets).item<double>(), 5 * cross_entropy, 1e-5);
}

TEST(OcrDet, ComputesTheLossOfImagesWithoutTexts) {
  const torch::Tensor maps = torch::full({2, 3, 4, 4}, 0.5).requires_grad_();
  torch::Tensor targets = torch::zeros({2, 4, 4, 4});
  targets.select(1, kShrinkMask).fill_(1);
  const torch::Tensor loss = detection_loss(maps, targets);
  EXPECT_NEAR(loss.item<double>(), 1, 1e-6);
  loss.backward();
  EXPECT_TRUE(torch::isfinite(maps.grad()).all().item<bool>());
}

// The maps that the network should give, taken as its output.
TEST(OcrDet, MeasuresBoxes) {
  const auto module = detector({.backbone = {.scale = 0.35}, .neck_channels = 16, .image_size = 96});
  const Batch batch = ocr_det_contract().batch(0);
  const torch::Tensor perfect = batch.tensors[1].unsqueeze(1);
  const EvalStep step = module->measure_output(perfect, batch);
  EXPECT_LT(step.loss.item<double>(), 1e-6);
  EXPECT_EQ(step.num_samples, batch.num_samples);
  const EvalSums sums{0, step.num_samples, step.sums};
  EXPECT_EQ(step.sums.at("texts"), static_cast<double>(batch.num_samples));
  EXPECT_EQ(module->validation_epoch_end(0, sums).at("hmean"), 1);
  const EvalStep blind = module->measure_output(torch::zeros_like(perfect), batch);
  EXPECT_EQ(module->validation_epoch_end(0, {0, 1, blind.sums}).at("hmean"), 0);
  torch::Tensor half = perfect.clone();
  half[0].zero_();
  const MetricValues metrics = module->validation_epoch_end(0, {0, 1, module->measure_output(half, batch).sums});
  EXPECT_EQ(metrics.at("precision"), 1);
  EXPECT_EQ(metrics.at("recall"), 0.75);
}

}  // namespace
}  // namespace assay::ocr_det
