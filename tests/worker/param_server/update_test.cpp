#include "param_server/update.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::ps {

namespace {

// The formulas of update.h, one number at a time, from doubles.
struct PlainUpdate {
  UpdateOptions o;
  double w = 0, m = 0, s = 0;
  void step(double gradient, double rate, int t) {
    double g = gradient + (o.name == "AdamW" ? 0 : o.weight_decay * w);
    if (o.name == "SGD") {
      w = w - rate * g;
    } else if (o.name == "Momentum") {
      m = o.momentum * m + g;
      w = w - rate * m;
    } else if (o.name == "Adagrad") {
      s = s + g * g;
      w = w - rate * g / (std::sqrt(s) + o.epsilon);
    } else {
      if (o.name == "AdamW") w = w - rate * o.weight_decay * w;
      m = o.beta1 * m + (1 - o.beta1) * g;
      s = o.beta2 * s + (1 - o.beta2) * g * g;
      w = w - rate * (m / (1 - std::pow(o.beta1, t))) / (std::sqrt(s / (1 - std::pow(o.beta2, t))) + o.epsilon);
    }
  }
};

template <typename T>
void expect_formula(const std::string& name, double tolerance) {
  const UpdateOptions options{.name = name, .weight_decay = 0.03, .momentum = 0.8, .beta1 = 0.85, .beta2 = 0.99};
  constexpr int kWidth = 5;
  std::vector<PlainUpdate> plain;
  std::vector<T> weight, first(kWidth, 0), second(kWidth, 0);
  for (int i = 0; i < kWidth; ++i) {
    plain.push_back({.o = options, .w = 0.3 * i - 0.5});
    weight.push_back(static_cast<T>(plain.back().w));
  }
  for (int t = 1; t <= 30; ++t) {
    const double rate = 0.1 / t;
    std::vector<T> gradient;
    for (int i = 0; i < kWidth; ++i) {
      const double g = std::sin(1.7 * t + i);
      gradient.push_back(static_cast<T>(g));
      plain[i].step(g, rate, t);
    }
    const UpdateSpan<T> row{.weight = weight.data(),
                            .gradient = gradient.data(),
                            .first = first.data(),
                            .second = second.data(),
                            .count = kWidth};
    update_kernel<T>(update_rule(name))(row, row_factors<T>(options, rate, t), nullptr);
  }
  for (int i = 0; i < kWidth; ++i) EXPECT_NEAR(weight[i], plain[i].w, tolerance) << name << " " << i;
}

}  // namespace

TEST(PsUpdate, FollowsTheFormulaOfEveryRule) {
  for (const std::string& name : update_names()) {
    expect_formula<double>(name, 1e-14);
    expect_formula<float>(name, 2e-6);
  }
}

TEST(PsUpdate, KeepsWhatEachRuleNeeds) {
  const auto keeps = [](const char* name) { return std::pair(row_parts(name).first, row_parts(name).second); };
  EXPECT_EQ(keeps("SGD"), std::pair(false, false));
  EXPECT_EQ(keeps("Momentum"), std::pair(true, false));
  EXPECT_EQ(keeps("Adagrad"), std::pair(false, true));
  EXPECT_EQ(keeps("Adam"), std::pair(true, true));
  EXPECT_EQ(keeps("AdamW"), std::pair(true, true));
}

}  // namespace assay::ps
