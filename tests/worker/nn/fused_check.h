// How the tests of fused operators compare: with libtorch's operators, and gradients with finite differences.
#pragma once

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace assay {

using FusedFunction = std::function<torch::Tensor(const std::vector<torch::Tensor>&)>;

inline std::vector<torch::Tensor> leaves(const std::vector<torch::Tensor>& values, torch::ScalarType type) {
  std::vector<torch::Tensor> result;
  for (const torch::Tensor& value : values) result.push_back(value.to(type).clone().requires_grad_(true));
  return result;
}

// The result and the gradients of all inputs, for a fixed random weighting of the result.
inline std::vector<torch::Tensor> pass_of(const FusedFunction& f, const std::vector<torch::Tensor>& values,
                                          torch::ScalarType type) {
  const std::vector<torch::Tensor> inputs = leaves(values, type);
  const torch::Tensor y = f(inputs);
  torch::manual_seed(77);
  const torch::Tensor weights = torch::randn(y.sizes()).to(type);
  (y * weights).sum().backward();
  std::vector<torch::Tensor> result{y.detach()};
  for (const torch::Tensor& input : inputs) result.push_back(input.grad());
  return result;
}

// In double and in float; libtorch's operators in double, since in float they may be the less exact ones.
inline void expect_same_pass(const FusedFunction& fused, const FusedFunction& plain,
                             const std::vector<torch::Tensor>& values, const std::string& where) {
  std::vector<torch::Tensor> rounded;
  for (const torch::Tensor& value : values) rounded.push_back(value.to(torch::kFloat));
  const std::vector<torch::Tensor> b = pass_of(plain, rounded, torch::kDouble);
  for (const auto& [type, tolerance] : {std::pair(torch::kDouble, 1e-11), std::pair(torch::kFloat, 1e-5)}) {
    const std::vector<torch::Tensor> a = pass_of(fused, rounded, type);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_TRUE(a[i].defined() && b[i].defined()) << where << " value " << i;
      ASSERT_EQ(a[i].sizes(), b[i].sizes()) << where << " value " << i;
      const double scale = std::max(b[i].abs().max().item<double>(), 1e-3);
      EXPECT_LT((a[i] - b[i]).abs().max().item<double>() / scale, tolerance)
          << where << (i == 0 ? " result" : " gradient " + std::to_string(i - 1)) << " " << c10::toString(type);
    }
  }
}

// Of every element, or of every n-th where there are too many.
inline void expect_finite_differences(const FusedFunction& f, const std::vector<torch::Tensor>& values,
                                      int64_t every = 1) {
  const std::vector<torch::Tensor> gradients = pass_of(f, values, torch::kDouble);
  const torch::NoGradGuard no_grad;
  const std::vector<torch::Tensor> inputs = leaves(values, torch::kDouble);
  torch::manual_seed(77);
  const torch::Tensor weights = torch::randn(gradients[0].sizes()).to(torch::kDouble);
  const auto value = [&] { return (f(inputs) * weights).sum().item<double>(); };
  for (size_t k = 0; k < inputs.size(); ++k) {
    auto* numbers = inputs[k].data_ptr<double>();
    // In the order of the input's memory, which need not be that of its indices.
    const torch::Tensor gradient = gradients[k + 1].contiguous(inputs[k].suggest_memory_format());
    for (int64_t i = 0; i < inputs[k].numel(); i += every) {
      constexpr double kStep = 1e-6;
      const double before = numbers[i];
      numbers[i] = before + kStep;
      const double above = value();
      numbers[i] = before - kStep;
      const double below = value();
      numbers[i] = before;
      EXPECT_NEAR(gradient.data_ptr<double>()[i], (above - below) / (2 * kStep), 2e-6) << "input " << k << " " << i;
    }
  }
}

inline void expect_same_on_any_threads(const FusedFunction& f, const std::vector<torch::Tensor>& values) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const std::vector<torch::Tensor> one = pass_of(f, values, torch::kFloat);
  at::set_num_threads(4);
  const std::vector<torch::Tensor> four = pass_of(f, values, torch::kFloat);
  at::set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].equal(four[i])) << "value " << i;
}

}  // namespace assay
