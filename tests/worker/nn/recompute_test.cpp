#include "nn/recompute.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/dropout.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "device/allocator.h"
#include "nn/norm_act.h"

namespace assay {

namespace {

// Two linear layers with dropout between them; counts how often it runs.
struct Part {
  torch::nn::Linear first{16, 64};
  torch::nn::Linear second{64, 16};
  int calls = 0;
  // The second output is for nobody.
  std::vector<torch::Tensor> operator()(const std::vector<torch::Tensor>& inputs) {
    ++calls;
    const torch::Tensor hidden = first->forward(inputs.at(0)).relu();
    const torch::Tensor kept =
        torch::nn::functional::dropout(hidden, torch::nn::functional::DropoutFuncOptions().p(0.3));
    return {second->forward(kept), kept.exp()};
  }
  std::vector<torch::Tensor> gradients() const {
    return {first->weight.grad(), first->bias.grad(), second->weight.grad(), second->bias.grad()};
  }
};

struct Outcome {
  torch::Tensor output, input_gradient, next_random;
  std::vector<torch::Tensor> gradients;
  int calls;
};

Outcome run(bool again, bool input_needs_gradient = true) {
  torch::manual_seed(5);
  Part part;
  torch::Tensor x = torch::randn({8, 16}).set_requires_grad(input_needs_gradient);
  const RecomputedPart body = [&](const std::vector<torch::Tensor>& inputs) { return part(inputs); };
  const torch::Tensor y = (again ? recompute(body, {x}) : body({x})).at(0);
  const torch::Tensor after = torch::dropout(y, 0.5, true);  // randomness between both passes
  after.square().sum().backward();
  return {y.detach(), x.grad(), torch::rand({4}), part.gradients(), part.calls};
}

}  // namespace

// The second pass says that it is one, so that what counts batches does not count one twice.
TEST(Recompute, CountsStatisticsOfABatchOnce) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {  // the fused operator, and libtorch's
    const auto statistics = [&](bool again) {
      torch::manual_seed(3);
      torch::nn::BatchNorm2d norm(4);
      const torch::Tensor x =
          torch::randn({3, 4, 5, 5}).to(type).contiguous(torch::MemoryFormat::ChannelsLast).set_requires_grad(true);
      const RecomputedPart body = [&](const std::vector<torch::Tensor>& in) {
        return std::vector<torch::Tensor>{norm_act(*norm, in[0], {.residual = {}, .relu = true})};
      };
      EXPECT_FALSE(is_recomputing());
      const torch::Tensor y = (again ? recompute(body, {x}) : body({x}))[0];
      y.to(torch::kFloat).square().sum().backward();
      return std::vector<torch::Tensor>{norm->running_mean, norm->running_var, norm->num_batches_tracked, x.grad(),
                                        norm->weight.grad()};
    };
    const auto once = statistics(false), twice = statistics(true);
    for (size_t i = 0; i < once.size(); ++i) EXPECT_TRUE(torch::equal(once[i], twice[i])) << i << " " << type;
  }
}

TEST(Recompute, GivesBitwiseTheGradientsOfThePlainCall) {
  const Outcome plain = run(false);
  const Outcome again = run(true);
  EXPECT_EQ(plain.calls, 1);
  EXPECT_EQ(again.calls, 2);
  EXPECT_TRUE(torch::equal(plain.output, again.output));
  EXPECT_TRUE(torch::equal(plain.input_gradient, again.input_gradient));
  for (size_t i = 0; i < plain.gradients.size(); ++i) EXPECT_TRUE(torch::equal(plain.gradients[i], again.gradients[i]));
  EXPECT_TRUE(torch::equal(plain.next_random, again.next_random));  // the generator goes on as if nothing had happened
}

TEST(Recompute, GivesParametersGradientsWhenTheInputNeedsNone) {
  const Outcome plain = run(false, /*input_needs_gradient=*/false);
  const Outcome again = run(true, /*input_needs_gradient=*/false);
  EXPECT_FALSE(again.input_gradient.defined());
  for (size_t i = 0; i < plain.gradients.size(); ++i) EXPECT_TRUE(torch::equal(plain.gradients[i], again.gradients[i]));
}

TEST(Recompute, TakesIntegerInputs) {
  torch::manual_seed(1);
  torch::nn::Embedding table(10, 4);
  const torch::Tensor ids = torch::tensor({1, 2, 2});
  const torch::Tensor scale = torch::ones({4}).set_requires_grad(true);
  const RecomputedPart part = [&](const std::vector<torch::Tensor>& in) {
    return std::vector<torch::Tensor>{table->forward(in[0]) * in[1]};
  };
  recompute(part, {ids, scale}).at(0).sum().backward();
  EXPECT_EQ(table->weight.grad()[2].sum().item<float>(), 8.0f);  // two occurrences, four columns
  EXPECT_TRUE(scale.grad().defined());
}

TEST(Recompute, NestsAndKeepsAutocast) {
  torch::manual_seed(2);
  torch::nn::Linear layer(4, 4);
  std::vector<torch::ScalarType> types;
  const RecomputedPart inner = [&](const std::vector<torch::Tensor>& in) {
    const torch::Tensor y = layer->forward(in[0]);
    types.push_back(y.scalar_type());
    return std::vector<torch::Tensor>{y};
  };
  const RecomputedPart outer = [&](const std::vector<torch::Tensor>& in) {
    return std::vector<torch::Tensor>{recompute(inner, in).at(0).relu()};
  };
  at::autocast::set_autocast_cpu_dtype(torch::kBFloat16);
  at::autocast::set_cpu_enabled(true);
  const torch::Tensor y = recompute(outer, {torch::randn({2, 4})}).at(0);
  at::autocast::set_cpu_enabled(false);
  y.to(torch::kFloat).sum().backward();
  EXPECT_EQ(types, std::vector<torch::ScalarType>(3, torch::kBFloat16));
  EXPECT_FALSE(at::autocast::is_cpu_enabled());
  EXPECT_TRUE(layer->weight.grad().defined());
}

// Two updates under autocast, which keeps copies of weights: each pass must see the weights of its step.
TEST(Recompute, ComputesWithTheWeightsOfTheStepUnderAutocast) {
  const auto train = [](bool again) {
    torch::manual_seed(3);
    torch::Tensor weight = torch::randn({4, 4}).set_requires_grad(true);
    const RecomputedPart part = [&](const std::vector<torch::Tensor>& in) {
      return std::vector<torch::Tensor>{torch::linear(in[0], weight)};
    };
    const torch::Tensor x = torch::randn({2, 4});
    at::autocast::set_autocast_cpu_dtype(torch::kBFloat16);
    for (int step = 0; step < 3; ++step) {
      at::autocast::set_cpu_enabled(true);
      const torch::Tensor y = (again ? recompute(part, {x}) : part({x})).at(0);
      const torch::Tensor loss =
          (y + torch::linear(x, weight)).to(torch::kFloat).square().sum();  // the weight again, outside
      at::autocast::set_cpu_enabled(false);
      at::autocast::clear_cache();
      loss.backward();
      const torch::NoGradGuard no_grad;
      weight.sub_(weight.grad());
      weight.mutable_grad().reset();
    }
    return weight.detach();
  };
  EXPECT_TRUE(torch::equal(train(true), train(false)));
}

TEST(Recompute, KeepsNoActivationsOfThePart) {
  install_caching_allocator();
  const auto held = [](bool again) {
    torch::Tensor x = torch::randn({64, 1024}).set_requires_grad(true);
    const RecomputedPart deep = [](const std::vector<torch::Tensor>& in) {
      torch::Tensor y = in[0];
      for (int i = 0; i < 16; ++i) y = y.sigmoid();
      return std::vector<torch::Tensor>{y};
    };
    const int64_t before = allocator_stats().in_use_bytes;
    const auto y = again ? recompute(deep, {x}) : deep({x});
    return allocator_stats().in_use_bytes - before;
  };
  const int64_t one = int64_t{64} * 1024 * 4;
  EXPECT_GE(held(false), 16 * one);
  EXPECT_LT(held(true), 2 * one);
}

TEST(Recompute, IsAPlainCallWithoutGradients) {
  const torch::NoGradGuard guard;
  Part part;
  const torch::Tensor y =
      recompute([&](const std::vector<torch::Tensor>& in) { return part(in); }, {torch::randn({2, 16})}).at(0);
  EXPECT_EQ(part.calls, 1);
  EXPECT_FALSE(y.requires_grad());
}

}  // namespace assay
