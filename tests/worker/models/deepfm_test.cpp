// What DeepFM has besides the contract of models_test.cpp: sparse gradients, sizes, the metric over a whole evaluation.
#include "models/deepfm/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "contract_case.h"
#include "data/loader.h"
#include "engine/loop/engine.h"
#include "models/common/auc.h"

namespace assay {
namespace {

std::unique_ptr<Module> make_deepfm(const deepfm::Options& options) {
  torch::manual_seed(6);
  auto module = std::make_unique<deepfm::DeepFm>(options);
  module->init();
  return module;
}

TEST(DeepFm, CountsParametersAndOperationsByTheFormula) {
  const int64_t values = 671 + 9066;
  const auto published = make_deepfm({});
  EXPECT_EQ(num_parameters(*published), 1 + values * (1 + 10) + (20 * 400 + 400) + 2 * (400 * 400 + 400) + 400 + 1);
  EXPECT_EQ(published->flops_per_sample(), 6.0 * (20 * 400 + 2 * 400 * 400 + 400 + 2 * 20 + 10));
  // The published size: Criteo has 39 fields.
  const deepfm::Options criteo{.fields = std::vector<int64_t>(39, 100)};
  EXPECT_EQ(num_parameters(*make_deepfm(criteo)), 1 + 3900 * 11 + (390 * 400 + 400) + 2 * (400 * 400 + 400) + 400 + 1);
  EXPECT_EQ(num_parameters(*make_deepfm({.embedding_size = 8, .hidden_sizes = {}})), 1 + values * 9);
}

// Without a network and with one-dimensional embeddings the model is a formula.
TEST(DeepFm, IsTheFactorisationMachine) {
  const auto module = make_deepfm({.fields = {2, 2, 2}, .embedding_size = 1, .hidden_sizes = {}});
  const torch::NoGradGuard no_grad;
  auto parameters = module->model().named_parameters();
  parameters["bias"].fill_(100);
  parameters["linear.weight"].copy_(torch::tensor({1, 2, 3, 4, 5, 6}).unsqueeze(1));
  parameters["embedding.weight"].copy_(torch::tensor({2, 3, 5, 7, 11, 13}).unsqueeze(1));
  const auto field = [](int64_t value) { return torch::tensor({value}); };
  const torch::Tensor y = module->forward({field(1), field(0), field(1)});
  EXPECT_EQ(y.item<double>(), 100 + 2 + 3 + 6 + 3 * 5 + 3 * 13 + 5 * 13);
}

TEST(DeepFm, LimitsGradientsOfTablesToTheBatch) {
  const auto module = make_deepfm({});
  const Batch batch{{torch::tensor({7, 7, 9}), torch::tensor({5000, 3, 5000}), torch::tensor({1.0F, 0.0F, 1.0F})}, 3};
  module->backward(module->training_step(batch));
  for (const char* name : {"linear.weight", "embedding.weight"}) {
    const torch::Tensor gradient = module->model().named_parameters()[name].grad();
    ASSERT_TRUE(gradient.is_sparse()) << name;
    const torch::Tensor rows = gradient.coalesce().indices()[0];
    EXPECT_TRUE(rows.equal(torch::tensor({7, 9, 671 + 3, 671 + 5000}))) << name << rows;
  }
  EXPECT_FALSE(module->model().named_parameters()["mlp.0.weight"].grad().is_sparse());
}

// Ten samples of two fields; what evaluate is given in batches is judged as a whole, each time anew.
class TenSamples final : public Dataset {
 public:
  explicit TenSamples(std::vector<float> labels) : labels_(std::move(labels)) {}
  int64_t size() const override { return 10; }
  Batch gather(std::span<const int64_t> indices, int64_t) const override {
    const torch::Tensor user = torch::tensor(std::vector<int64_t>(indices.begin(), indices.end()));
    torch::Tensor label = torch::empty({user.size(0)});
    for (size_t i = 0; i < indices.size(); ++i)
      label[static_cast<int64_t>(i)] = labels_[static_cast<size_t>(indices[i])];
    return {{user, user.remainder(3), label}, user.size(0)};
  }
  std::string hash() const override { return "ten"; }

 private:
  std::vector<float> labels_;
};

Loader loader_of(std::vector<float> labels) {
  auto data = std::make_shared<TenSamples>(std::move(labels));
  return {data, {.num_samples = 10, .batch_size = 3}, {}};
}

TEST(DeepFm, MeasuresTheAreaOverTheWholeEvaluation) {
  const auto module = make_deepfm({.fields = {10, 3}, .embedding_size = 4, .hidden_sizes = {8}});
  Engine engine(*module, EngineOptions{}, {});
  const std::vector<float> labels = {0, 1, 1, 0, 1, 0, 0, 1, 1, 0};
  Loader data = loader_of(labels);
  const torch::Tensor users = torch::arange(10);
  module->model().eval();
  const torch::Tensor scores = module->forward({users, users.remainder(3)});
  const torch::Tensor truth = torch::tensor(labels);
  for (int round = 0; round < 2; ++round) {
    const MetricValues metrics = engine.evaluate(data, std::nullopt).metrics;
    EXPECT_DOUBLE_EQ(metrics.at("auc"), area_under_curve(scores, truth));
    EXPECT_NEAR(metrics.at("logloss"), torch::binary_cross_entropy_with_logits(scores, truth).item<double>(), 1e-6);
    EXPECT_DOUBLE_EQ(metrics.at("accuracy"), scores.gt(0).eq(truth.gt(0.5)).sum().item<double>() / 10);
    EXPECT_DOUBLE_EQ(engine.predict(data, std::nullopt).evaluation.metrics.at("auc"), metrics.at("auc"));
  }
  // A part of the data, and data of one class, where no pair exists.
  EXPECT_DOUBLE_EQ(engine.evaluate(data, 2).metrics.at("auc"),
                   area_under_curve(scores.narrow(0, 0, 6), truth.narrow(0, 0, 6)));
  Loader liked = loader_of(std::vector<float>(10, 1));
  const MetricValues metrics = engine.evaluate(liked, std::nullopt).metrics;
  EXPECT_TRUE(std::isnan(metrics.at("auc")));
  EXPECT_TRUE(std::isfinite(metrics.at("logloss")));
}

TEST(DeepFm, RejectsSillyOptions) {
  const auto refuses = [](const Json& section) {
    Reader reader(section, "Model");
    EXPECT_THROW(deepfm::entry().make(reader), ConfigError) << section;
  };
  refuses({{"fields", {5}}});
  refuses({{"fields", {5, 0}}});
  refuses({{"fields", {int64_t{1} << 31, int64_t{1} << 31}}});
  refuses({{"embedding_size", 0}});
  refuses({{"hidden_sizes", {16, -1}}});
  refuses({{"dropout", 1.0}});
  refuses({{"initializer_range", 0.0}});
}

}  // namespace
}  // namespace assay
