#include "deploy/export.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/files.h"
#include "deploy/predictor.h"
#include "engine/checkpoint/tensor_file.h"

namespace assay {
namespace {

constexpr int64_t kVocabulary = 50;

// Token ids and a mask of free length, and three numbers per sample: the mean of the unmasked embeddings, joined with
// the numbers, into four classes.
class TextNetwork final : public Network {
 public:
  TextNetwork(bool traceable, double rounding) : traceable_(traceable), rounding_(rounding) {
    embedding_ = register_module("embedding", torch::nn::Embedding(kVocabulary, 8));
    head_ = register_module("head", torch::nn::Linear(8 + 3, 4));
  }
  torch::Tensor forward(const TensorList& inputs) override {
    const torch::Tensor weight = inputs.at(1).to(torch::kFloat).unsqueeze(2);
    torch::Tensor mean = (embedding_->forward(inputs.at(0)) * weight).sum(1) / weight.sum(1).clamp_min(1);
    // A constant in the graph, made from an extent.
    if (!traceable_) mean = mean * static_cast<double>(inputs.at(0).size(1));
    const torch::Tensor y = head_->forward(torch::cat({mean, inputs.at(2)}, 1));
    if (rounding_ == 0) return y;
    // Beside large numbers; a trace adds something to all.
    return torch::cat({y, torch::full_like(y, 1000)}, 1) + (torch::jit::tracer::isTracing() ? rounding_ : 0);
  }

 private:
  bool traceable_;
  double rounding_;
  torch::nn::Embedding embedding_{nullptr};
  torch::nn::Linear head_{nullptr};
};

class TextModule final : public Module {
 public:
  explicit TextModule(bool traceable = true, double rounding = 0) : traceable_(traceable), rounding_(rounding) {}
  std::shared_ptr<Network> get_model() override { return std::make_shared<TextNetwork>(traceable_, rounding_); }
  LossFunction get_loss_fn() override {
    return [](const torch::Tensor& x, const torch::Tensor& y) { return torch::nn::functional::cross_entropy(x, y); };
  }
  std::vector<InputSpec> input_spec() const override {
    return {{.name = "ids", .dtype = torch::kLong, .shape = {-1, -1}, .num_values = kVocabulary},
            {.name = "mask", .dtype = torch::kBool, .shape = {-1, -1}, .num_values = 2},
            {.name = "numbers", .dtype = torch::kFloat, .shape = {-1, 3}}};
  }
  std::string sample_unit() const override { return "tokens"; }
  double units_per_sample() const override { return 64; }

 private:
  bool traceable_;
  double rounding_;
};

TEST(Export, TakesSeveralInputsIntegersAndFreeLengths) {
  torch::manual_seed(4);
  TextModule module;
  module.init();
  const TempFolder folder("export");
  const ExportInfo info = export_torchscript(module, folder.path() / "model.pt", "text");
  EXPECT_EQ(info.weights_hash, hash_of(state_of(module.model())));
  Predictor predictor(folder.path() / "model.pt");
  ASSERT_EQ(predictor.info().inputs.size(), 3u);
  EXPECT_EQ(predictor.info().inputs[0].dtype, torch::kLong);
  EXPECT_EQ(predictor.info().inputs[0].num_values, kVocabulary);
  EXPECT_EQ(predictor.info().inputs[1].dtype, torch::kBool);
  EXPECT_EQ(predictor.info().weights_hash, info.weights_hash);
  EXPECT_EQ(predictor.info().sample_unit, "tokens");
  EXPECT_EQ(predictor.info().units_per_sample, 64);
  const torch::NoGradGuard no_grad;
  for (const auto& [batch, length] : {std::pair<int64_t, int64_t>{1, 1}, {5, 9}, {2, 30}}) {
    const TensorList inputs = {torch::randint(kVocabulary, {batch, length}), torch::rand({batch, length}).gt(0.3),
                               torch::randn({batch, 3})};
    EXPECT_TRUE(torch::allclose(predictor.run(inputs), module.forward(inputs), 1e-5, 1e-6)) << batch << "x" << length;
  }
  EXPECT_THROW(predictor.run({torch::zeros({2, 3}), torch::ones({2, 3}, torch::kBool), torch::zeros({2, 3})}),
               DataError);
  EXPECT_THROW(predictor.run({torch::zeros({2, 3}, torch::kLong)}), DataError);
}

// Rounding is measured against the largest value: 1e-3 beside 1000 is rounding, 0.1 is not.
TEST(Export, IgnoresDifferencesOfRounding) {
  const TempFolder folder("export");
  TextModule rounded(/*traceable=*/true, 1e-3);
  rounded.init();
  export_torchscript(rounded, folder.path() / "model.pt", "text");
  EXPECT_TRUE(fs::exists(folder.path() / "model.pt"));
  TextModule wrong(/*traceable=*/true, 0.1);
  wrong.init();
  EXPECT_THROW(export_torchscript(wrong, folder.path() / "other.pt", "text"), InternalError);
}

TEST(Export, DoesNotDisturbTheRandomGenerator) {
  TextModule module;
  module.init();
  const TempFolder folder("export");
  torch::manual_seed(8);
  const torch::Tensor expected = torch::rand({3});
  torch::manual_seed(8);
  export_torchscript(module, folder.path() / "model.pt", "text");
  EXPECT_TRUE(torch::rand({3}).equal(expected));
}

TEST(Export, RejectsAForwardPassThatCannotBeTraced) {
  TextModule module(/*traceable=*/false);
  module.init();
  const TempFolder folder("export");
  try {
    export_torchscript(module, folder.path() / "model.pt", "text");
    FAIL() << "accepted";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("extents"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(fs::exists(folder.path() / "model.pt"));
}

}  // namespace
}  // namespace assay
