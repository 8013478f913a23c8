// Schedules and optimizers against PyTorch's own, which tests/peers/torch_reference.py runs.
#include "engine/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "engine/schedule.h"
#include "engine/tensor_file.h"
#include "peer.h"

namespace assay {
namespace {

constexpr int64_t kSteps = 50;  // as in the peer

const std::map<std::string, torch::Tensor>& reference() {
  static const std::map<std::string, torch::Tensor> kTensors = [] {
    const TempFolder folder("reference");
    run_peer("torch_reference.py", folder.path());
    return load_tensors(folder.path() / "reference.safetensors").tensors;
  }();
  return kTensors;
}

Schedule::Options schedule(const std::string& name) {
  Schedule::Options options;
  options.name = name;
  options.learning_rate = 0.5;
  options.decay_steps = kSteps;
  return options;
}

void expect_rates(const std::string& peer, const Schedule::Options& options) {
  const torch::Tensor expected = reference().at("schedule." + peer);
  const Schedule ours(options);
  for (int64_t t = 0; t < kSteps; ++t) {
    EXPECT_NEAR(ours.rate(t), expected[t].item<double>(), 1e-12) << peer << " at update " << t;
  }
}

TEST(ScheduleAgainstPyTorch, EverySchedule) {
  expect_rates("constant", schedule("constant"));
  Schedule::Options options = schedule("cosine");
  options.min_lr = 0.01;
  expect_rates("cosine", options);
  options = schedule("linear");
  options.min_lr = 0.01;
  expect_rates("linear", options);
  options = schedule("multistep");
  options.milestones = {10, 30};
  options.gamma = 0.2;
  expect_rates("multistep", options);
  expect_rates("one_cycle", schedule("one_cycle"));
  options = schedule("one_cycle");
  options.pct_start = 0.04;
  expect_rates("one_cycle_short", options);
}

TEST(ScheduleAgainstPyTorch, WarmUp) {
  Schedule::Options options = schedule("cosine");
  options.warmup_steps = 8;
  expect_rates("warm_cosine", options);
  options = schedule("linear");
  options.warmup_steps = 8;
  expect_rates("warm_linear", options);
}

TEST(Schedule, FirstRateIsNeverZeroAndLateRatesStayAtTheEnd) {
  for (const std::string& name : Schedule::names()) {
    for (const int64_t steps : {1, 2, 3, 100}) {
      Schedule::Options options = schedule(name);
      options.decay_steps = steps;
      const Schedule ours(options);
      EXPECT_GT(ours.rate(0), 0) << name << " over " << steps;
      EXPECT_TRUE(std::isfinite(ours.rate(10 * steps))) << name;
      EXPECT_LE(ours.rate(10 * steps), 0.5) << name;
    }
  }
}

TEST(Schedule, RefusesNonsense) {
  EXPECT_THROW(Schedule(schedule("cosin")), ConfigError);
  Schedule::Options options = schedule("one_cycle");
  options.warmup_steps = 3;
  EXPECT_THROW(Schedule{options}, ConfigError);
  options = schedule("cosine");
  options.learning_rate = 0;
  EXPECT_THROW(Schedule{options}, ConfigError);
  options = schedule("cosine");
  options.decay_steps = 0;
  EXPECT_THROW(Schedule{options}, ConfigError);
}

// The first weights and the gradients of the peer.
torch::Tensor first_weight() {
  return torch::cos(torch::arange(10, torch::kFloat)).reshape({2, 5}).requires_grad_(true);
}
torch::Tensor gradient(int t) { return torch::sin(0.3 * t + torch::arange(10, torch::kFloat)).reshape({2, 5}); }

void expect_updates(const std::string& peer, const Optimizer::Options& options, double rate) {
  const torch::Tensor expected = reference().at("optimizer." + peer);
  const torch::Tensor weight = first_weight();
  Optimizer optimizer({{"w", weight}}, options);
  for (int t = 0; t < 20; ++t) {
    torch::Tensor(weight).mutable_grad() = gradient(t);
    optimizer.step(rate);
    EXPECT_TRUE(torch::allclose(weight.detach(), expected[t], 1e-5, 1e-6)) << peer << " at update " << t << "\n"
                                                                           << weight << expected[t];
  }
}

TEST(OptimizerAgainstPyTorch, EveryRule) {
  expect_updates("sgd", {.name = "SGD", .weight_decay = 0.01, .clip_norm = {}}, 0.1);
  expect_updates("momentum", {.name = "Momentum", .weight_decay = 0.01, .clip_norm = {}}, 0.1);
  expect_updates("nesterov", {.name = "Momentum", .weight_decay = 0.01, .nesterov = true, .clip_norm = {}}, 0.1);
  expect_updates("adam", {.name = "Adam", .weight_decay = 0.01, .clip_norm = {}}, 0.05);
  expect_updates("adamw", {.name = "AdamW", .weight_decay = 0.01, .clip_norm = {}}, 0.05);
  expect_updates("clipped", {.name = "SGD", .clip_norm = 1.0}, 0.1);
}

TEST(Optimizer, AdamWDoesNotDecayBiases) {
  const torch::Tensor bias = torch::ones({4}).requires_grad_(true);
  const torch::Tensor weight = torch::ones({2, 2}).requires_grad_(true);
  Optimizer optimizer({{"bias", bias}, {"weight", weight}}, {.name = "AdamW", .weight_decay = 0.5, .clip_norm = {}});
  torch::Tensor(bias).mutable_grad() = torch::zeros({4});
  torch::Tensor(weight).mutable_grad() = torch::zeros({2, 2});
  optimizer.step(0.1);
  EXPECT_TRUE(bias.detach().equal(torch::ones({4})));
  EXPECT_TRUE(torch::allclose(weight.detach(), torch::full({2, 2}, 0.95)));
}

TEST(Optimizer, LayoutOfTheGradientDoesNotMatter) {
  torch::manual_seed(3);
  const torch::Tensor start = torch::randn({8, 4, 3, 3});
  const torch::Tensor grad = torch::randn({8, 4, 3, 3});
  const torch::Tensor plain = start.clone().requires_grad_(true);
  const torch::Tensor last = start.contiguous(torch::MemoryFormat::ChannelsLast).clone().requires_grad_(true);
  ASSERT_NE(plain.strides(), last.strides());
  Optimizer one({{"w", plain}}, {.name = "Adam", .clip_norm = {}});
  Optimizer two({{"w", last}}, {.name = "Adam", .clip_norm = {}});
  for (int i = 0; i < 3; ++i) {
    torch::Tensor(plain).mutable_grad() = grad.clone();
    torch::Tensor(last).mutable_grad() = grad.clone();
    one.step(0.1);
    two.step(0.1);
  }
  EXPECT_TRUE(plain.detach().equal(last.detach()));
}

TEST(Optimizer, ClippingReportsTheNormAndRefusesNonFiniteBeforeAnyChange) {
  const torch::Tensor weight = torch::ones({40000}).requires_grad_(true);  // several pieces
  Optimizer optimizer({{"w", weight}}, {.name = "SGD", .clip_norm = 1.0});
  torch::Tensor(weight).mutable_grad() = torch::full({40000}, 0.5);
  EXPECT_NEAR(optimizer.step(1.0).value(), 100.0, 1e-9);
  const torch::Tensor before = weight.detach().clone();
  torch::Tensor bad = torch::zeros({40000});
  bad[39999] = NAN;
  torch::Tensor(weight).mutable_grad() = bad;
  EXPECT_THROW(optimizer.step(1.0), NonFiniteError);
  EXPECT_TRUE(weight.detach().equal(before));
}

TEST(Optimizer, StateGoesOutAndIn) {
  const auto train = [](Optimizer& optimizer, const torch::Tensor& weight, int from, int to) {
    for (int t = from; t < to; ++t) {
      torch::Tensor(weight).mutable_grad() = gradient(t);
      optimizer.step(0.05);
    }
  };
  const Optimizer::Options options{.name = "AdamW", .weight_decay = 0.01, .clip_norm = {}};
  const torch::Tensor whole = first_weight();
  Optimizer uninterrupted({{"w", whole}}, options);
  train(uninterrupted, whole, 0, 10);

  const torch::Tensor first = first_weight();
  Optimizer before({{"w", first}}, options);
  train(before, first, 0, 4);
  std::map<std::string, torch::Tensor> state;
  for (const auto& [name, tensor] : before.state()) state[name] = tensor.clone();
  const torch::Tensor second = first.detach().clone().requires_grad_(true);
  Optimizer after({{"w", second}}, options);
  after.load_state(state, before.num_updates());
  train(after, second, 4, 10);
  EXPECT_TRUE(second.detach().equal(whole.detach()));

  state.erase("moment2.w");
  EXPECT_THROW(after.load_state(state, 4), DataError);
  state["moment2.w"] = torch::zeros({3});
  EXPECT_THROW(after.load_state(state, 4), DataError);
}

TEST(Optimizer, RefusesAnUnknownName) { EXPECT_THROW(Optimizer({}, {.name = "Adamw", .clip_norm = {}}), ConfigError); }

}  // namespace
}  // namespace assay
