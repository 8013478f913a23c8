#include "parallel/eval_exchange.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>

using namespace assay;

TEST(EvalExchange, AddsUpSumsAndJoinsValues) {
  EvalSums first{.loss = 1.5, .num_samples = 2, .sums = {{"correct", 1}}, .values = {}};
  first.values["score"] = torch::tensor({0.25, 0.5}, torch::kFloat);
  EvalSums second{.loss = 2, .num_samples = 1, .sums = {{"correct", 1}, {"other", 3}}, .values = {}};
  second.values["score"] = torch::tensor({0.75}, torch::kFloat);
  const EvalSums all = merge_sums({pack_sums(first), pack_sums(second)});
  EXPECT_EQ(all.loss, 3.5);
  EXPECT_EQ(all.num_samples, 3);
  EXPECT_EQ(all.sums, (std::map<std::string, double>{{"correct", 2}, {"other", 3}}));
  EXPECT_TRUE(torch::equal(all.values.at("score"), torch::tensor({0.25, 0.5, 0.75}, torch::kDouble)));
}

TEST(EvalExchange, KeepsWhatIsNotANumber) {
  const EvalSums sums{.loss = std::nan(""), .num_samples = 1, .sums = {{"norm", INFINITY}}, .values = {}};
  const EvalSums all = merge_sums({pack_sums(sums)});
  EXPECT_TRUE(std::isnan(all.loss));
  EXPECT_EQ(all.sums.at("norm"), INFINITY);
}
