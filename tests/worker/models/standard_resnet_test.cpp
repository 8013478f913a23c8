// The published residual networks: sizes, names, operations, published files, and one against plain PyTorch.
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "../engine/peer.h"
#include "base/error.h"
#include "base/files.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/tensor_file.h"
#include "models/registry.h"
#include "models/resnet/standard.h"

namespace assay {
namespace {

std::unique_ptr<Module> standard_resnet(const resnet::StandardOptions& options) {
  torch::manual_seed(9);
  auto module = std::make_unique<resnet::StandardResNet>(options);
  module->init();
  return module;
}

TEST(StandardResNet, HasThePublishedSizesAndNames) {
  EXPECT_EQ(num_parameters(*standard_resnet({.depth = 18})), 11'689'512);
  EXPECT_EQ(num_parameters(*standard_resnet({.depth = 34})), 21'797'672);
  const auto module = standard_resnet({});
  EXPECT_EQ(num_parameters(*module), 25'557'032);
  const auto parameters = module->model().named_parameters();
  EXPECT_EQ(parameters["layer4.0.downsample.0.weight"].sizes(), at::IntArrayRef({2048, 1024, 1, 1}));
  EXPECT_EQ(parameters["layer3.5.conv2.weight"].sizes(), at::IntArrayRef({256, 256, 3, 3}));
  EXPECT_TRUE(module->model().named_buffers().contains("layer1.0.bn1.running_mean"));
  EXPECT_THROW(standard_resnet({.depth = 20}), ConfigError);
}

// Billions of multiply-adds for a 224x224 image, as torchvision states them.
TEST(StandardResNet, CountsItsOperations) {
  const auto billions = [](int64_t depth) {
    return *resnet::StandardResNet({.depth = depth}).flops_per_sample() / kTrainFlops / 1e9;
  };
  EXPECT_NEAR(billions(18), 1.814, 0.001);
  EXPECT_NEAR(billions(34), 3.664, 0.001);
  EXPECT_NEAR(billions(50), 4.089, 0.001);
  EXPECT_NEAR(billions(101), 7.801, 0.001);
  EXPECT_NEAR(billions(152), 11.514, 0.001);
}

TEST(StandardResNet, IsTheModelResnetWithADepth) {
  const auto make = [](Json section) {
    section["name"] = "resnet";
    return make_module(Reader(section, "Model"));
  };
  const auto module = make({{"depth", 18}, {"num_classes", 7}, {"image_size", 64}});
  EXPECT_EQ(module->input_spec().at(0).shape, (std::vector<int64_t>{-1, 3, 64, 64}));
  EXPECT_EQ(num_parameters(*module), 11'689'512 - 513 * (1000 - 7));
  EXPECT_THROW(make({{"depth", 20}}), ConfigError);
  EXPECT_THROW(make({{"depth", 18}, {"width", 16}}), ConfigError);
  EXPECT_THROW(make({{"depth", 18}, {"image_size", 8}}), ConfigError);
}

// A file as it is published: torchvision's names, and no count of batches.
TEST(StandardResNet, LoadsPublishedWeights) {
  const TempFolder folder("published");
  run_peer("published_resnet.py", folder.path());
  const auto expected = load_tensors(folder.path() / "expected.safetensors").tensors;
  const auto module = standard_resnet({.depth = 50, .num_classes = 1000, .image_size = 64});
  load_pretrained(folder.path() / "resnet50.safetensors", *module);
  module->model().eval();
  const torch::NoGradGuard no_grad;
  const torch::Tensor output = module->forward(inputs_of(module->pretreating_batch({{expected.at("image"), {}}, 2})));
  const double largest = expected.at("output").abs().max().item<double>();
  EXPECT_LT((output - expected.at("output")).abs().max().item<double>(), 1e-4 * largest);
  const auto other_classes = standard_resnet({.depth = 50, .num_classes = 10, .image_size = 64});
  EXPECT_THROW(load_pretrained(folder.path() / "resnet50.safetensors", *other_classes), DataError);
}

// In double precision nothing but the order of sums differs, which even a deep network does not blow up.
TEST(StandardResNet, AgreesWithItsTwin) {
  const auto module = standard_resnet({.depth = 18, .num_classes = 10, .image_size = 64});
  module->model().to(torch::kDouble);
  const torch::Tensor image = torch::randn({3, 4, 3, 64, 64}, torch::kDouble), label = torch::randint(10, {3, 4});
  const TempFolder folder("twin");
  save_tensors(folder.path() / "weights.safetensors", state_of(module->model()));
  save_tensors(folder.path() / "data.safetensors", {{"image", image}, {"label", label}});
  run_peer("resnet18.py", folder.path());
  const auto twin = load_tensors(folder.path() / "twin.safetensors").tensors;
  const auto batch = [&](int64_t i) { return module->pretreating_batch({{image[i].clone(), label[i]}, 4}); };
  const auto difference = [](const torch::Tensor& a, const torch::Tensor& b) {
    return ((a - b).abs().max() / b.abs().max()).item<double>();
  };
  module->model().eval();
  EXPECT_LT(difference(module->forward(inputs_of(batch(0))).detach(), twin.at("output")), 1e-10);
  module->model().train();
  module->backward(module->training_step(batch(0)));
  for (const auto& item : module->model().named_parameters()) {
    EXPECT_LT(difference(item.value().grad(), twin.at("gradient." + item.key())), 1e-8) << item.key();
  }
}

}  // namespace
}  // namespace assay
