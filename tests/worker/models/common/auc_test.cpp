// The area under the curve against its definition, pair by pair.
#include "models/common/auc.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace assay {
namespace {

double by_pairs(const torch::Tensor& scores, const torch::Tensor& labels) {
  double right = 0, pairs = 0;
  for (int64_t i = 0; i < scores.size(0); ++i) {
    for (int64_t j = 0; j < scores.size(0); ++j) {
      if (labels[i].item<double>() < 0.5 || labels[j].item<double>() > 0.5) continue;
      const double difference = scores[i].item<double>() - scores[j].item<double>();
      right += difference > 0 ? 1 : difference == 0 ? 0.5 : 0;
      ++pairs;
    }
  }
  return right / pairs;
}

TEST(AreaUnderCurve, CountsPairsAndHalvesTies) {
  torch::manual_seed(3);
  for (const int64_t num_scores : {1, 2, 5, 1000000}) {
    for (int round = 0; round < 5; ++round) {
      const torch::Tensor scores = torch::randint(num_scores, {60}).to(torch::kFloat) - 2;
      const torch::Tensor labels = torch::randint(2, {60}).to(torch::kFloat);
      EXPECT_DOUBLE_EQ(area_under_curve(scores, labels), by_pairs(scores, labels)) << num_scores;
    }
  }
}

TEST(AreaUnderCurve, GivesKnownValues) {
  const torch::Tensor labels = torch::tensor({0.0F, 0.0F, 1.0F, 1.0F});
  EXPECT_EQ(area_under_curve(torch::tensor({0.1F, 0.4F, 0.35F, 0.8F}), labels), 0.75);
  EXPECT_EQ(area_under_curve(torch::tensor({1, 2, 3, 4}), labels), 1);
  EXPECT_EQ(area_under_curve(torch::tensor({4, 3, 2, 1}), labels), 0);
  EXPECT_EQ(area_under_curve(torch::tensor({7, 7, 7, 7}), labels), 0.5);
  EXPECT_EQ(area_under_curve(torch::tensor({-INFINITY, 0.0F, 0.0F, INFINITY}), labels), 0.875);
}

TEST(AreaUnderCurve, IsNaNWithoutBothClassesAndWithNaN) {
  const torch::Tensor scores = torch::tensor({0.1, 0.2, 0.3});
  EXPECT_TRUE(std::isnan(area_under_curve(scores, torch::ones({3}))));
  EXPECT_TRUE(std::isnan(area_under_curve(scores, torch::zeros({3}))));
  EXPECT_TRUE(std::isnan(area_under_curve(torch::empty({0}), torch::empty({0}))));
  EXPECT_TRUE(std::isnan(area_under_curve(torch::tensor({0.1, std::nan(""), 0.3}), torch::tensor({0, 1, 1}))));
  EXPECT_THROW(area_under_curve(scores, torch::ones({4})), InternalError);
}

}  // namespace
}  // namespace assay
