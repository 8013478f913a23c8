// Schedules and optimizers against PyTorch's own, which tests/peers/torch_reference.py runs.
#include "engine/optimizer/fused_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../peer.h"
#include "base/error.h"
#include "base/files.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/optimizer/schedule.h"
#include "engine/optimizer/updater.h"

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
    EXPECT_NEAR(ours.rate({t}), expected[t].item<double>(), 1e-12) << peer << " at update " << t;
  }
}

TEST(ScheduleAgainstPyTorch, MatchesEverySchedule) {
  expect_rates("constant", schedule("constant"));
  Schedule::Options options = schedule("cosine");
  options.min_lr = 0.01;
  expect_rates("cosine", options);
  options = schedule("linear");
  options.min_lr = 0.01;
  expect_rates("linear", options);
  options = schedule("polynomial");
  options.power = 2.5;
  expect_rates("polynomial", options);
  options = schedule("multistep");
  options.milestones = {10, 30};
  options.gamma = 0.2;
  expect_rates("multistep", options);
  expect_rates("one_cycle", schedule("one_cycle"));
  options = schedule("one_cycle");
  options.pct_start = 0.04;
  expect_rates("one_cycle_short", options);
}

TEST(ScheduleAgainstPyTorch, MatchesTheWarmUp) {
  Schedule::Options options = schedule("cosine");
  options.warmup_steps = 8;
  expect_rates("warm_cosine", options);
  options = schedule("linear");
  options.warmup_steps = 8;
  expect_rates("warm_linear", options);
}

// Counting samples in equal batches gives the rates of counting steps.
TEST(Schedule, CountsSamplesOfEqualBatchesAsSteps) {
  for (const std::string& name : Schedule::names()) {
    Schedule::Options steps = schedule(name);
    steps.min_lr = 0.01;
    steps.power = 2;
    steps.milestones = {10, 30};
    if (name != "one_cycle") steps.warmup_steps = 8;
    Schedule::Options samples = steps;
    constexpr int64_t kBatch = 12;
    samples.decay_steps *= kBatch;
    samples.warmup_steps *= kBatch;
    for (int64_t& milestone : samples.milestones) milestone *= kBatch;
    for (int64_t t = 0; t < kSteps; ++t) {
      EXPECT_NEAR(Schedule(samples).rate({t * kBatch, kBatch}), Schedule(steps).rate({t}), 1e-15) << name << t;
    }
  }
}

TEST(Schedule, DoesNotExceedTheRateWithABatchLargerThanTheWarmUp) {
  Schedule::Options options = schedule("constant");
  options.warmup_steps = 10;
  EXPECT_EQ(Schedule(options).rate({8, 32}), 0.5);
}

TEST(Schedule, StartsAboveZeroAndStaysAtTheEnd) {
  for (const std::string& name : Schedule::names()) {
    for (const int64_t steps : {1, 2, 3, 100}) {
      Schedule::Options options = schedule(name);
      options.decay_steps = steps;
      const Schedule ours(options);
      EXPECT_GT(ours.rate({0}), 0) << name << " over " << steps;
      EXPECT_TRUE(std::isfinite(ours.rate({10 * steps}))) << name;
      EXPECT_LE(ours.rate({10 * steps}), 0.5) << name;
    }
  }
}

TEST(Schedule, RejectsNonsense) {
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
torch::Tensor first_weight(torch::ScalarType type = torch::kFloat) {
  return torch::cos(torch::arange(10, type)).reshape({2, 5}).requires_grad_(true);
}
torch::Tensor gradient(int t, torch::ScalarType type = torch::kFloat) {
  return torch::sin(0.3 * t + torch::arange(10, type)).reshape({2, 5});
}

void expect_updates(const std::string& peer, const Optimizer::Options& options, double rate) {
  for (const torch::ScalarType type : {torch::kFloat, torch::kDouble}) {
    const bool single = type == torch::kFloat;
    const torch::Tensor expected = reference().at((single ? "optimizer." : "optimizer64.") + peer);
    const torch::Tensor weight = first_weight(type);
    FusedOptimizer optimizer({{"w", weight}}, options);
    for (int t = 0; t < 20; ++t) {
      torch::Tensor(weight).mutable_grad() = gradient(t, type);
      optimizer.step({.learning_rate = rate});
      EXPECT_TRUE(torch::allclose(weight.detach(), expected[t], single ? 1e-5 : 1e-12, single ? 1e-6 : 1e-14))
          << peer << " at update " << t << "\n"
          << weight << expected[t];
    }
  }
}

TEST(OptimizerAgainstPyTorch, MatchesEveryRule) {
  expect_updates("sgd", {.name = "SGD", .weight_decay = 0.01}, 0.1);
  expect_updates("momentum", {.name = "Momentum", .weight_decay = 0.01}, 0.1);
  expect_updates("nesterov", {.name = "Momentum", .weight_decay = 0.01, .nesterov = true}, 0.1);
  expect_updates("adam", {.name = "Adam", .weight_decay = 0.01}, 0.05);
  expect_updates("adamw", {.name = "AdamW", .weight_decay = 0.01}, 0.05);
  expect_updates("adagrad", {.name = "Adagrad", .weight_decay = 0.01}, 0.1);
  expect_updates("lamb", {.name = "LAMB", .weight_decay = 0.01, .epsilon = 1e-6}, 0.05);
  expect_updates("clipped", {.name = "SGD", .clip_norm = 1.0}, 0.1);
}

// The gradients of the peer that are of some rows, one of them twice.
torch::Tensor row_gradient(int t, torch::ScalarType type = torch::kDouble) {
  const torch::Tensor rows = torch::tensor({{t % 6, (t + 2) % 5, t % 6}}, torch::kLong);
  const torch::Tensor numbers = torch::sin(0.3 * t + torch::arange(9, torch::kDouble)).reshape({3, 3});
  return torch::sparse_coo_tensor(rows, numbers.to(type), {6, 3});
}
torch::Tensor first_rows() {
  return torch::cos(torch::arange(18, torch::kDouble)).reshape({6, 3}).requires_grad_(true);
}

TEST(OptimizerAgainstPyTorch, MatchesSparseGradients) {
  const auto expect = [](const std::string& peer, const Optimizer::Options& options, double rate) {
    const torch::Tensor expected = reference().at("rows." + peer);
    const torch::Tensor weight = first_rows();
    FusedOptimizer optimizer({{"w", weight}}, options);
    for (int t = 0; t < 20; ++t) {
      torch::Tensor(weight).mutable_grad() = row_gradient(t);
      optimizer.step({.learning_rate = rate});
      EXPECT_TRUE(torch::allclose(weight.detach(), expected[t], 1e-9, 1e-12)) << peer << " at update " << t;
    }
  };
  expect("sgd", {.name = "SGD"}, 0.1);
  expect("clipped", {.name = "SGD", .clip_norm = 0.5}, 0.1);
  expect("adam", {.name = "Adam", .epsilon = 1e-12}, 0.05);
  expect("adagrad", {.name = "Adagrad"}, 0.1);
}

// Rows without a gradient stay as they are, with all that belongs to them; the others change as if they were alone.
TEST(Optimizer, ChangesOnlyTheRowsOfASparseGradient) {
  for (const std::string& rule : Optimizer::names()) {
    const Optimizer::Options options{.name = rule, .weight_decay = 0.1, .clip_norm = 0.5, .no_decay = {{}}};
    const torch::Tensor weight = first_rows();
    FusedOptimizer optimizer({{"w", weight}}, options);
    const torch::Tensor alone = first_rows().detach().narrow(0, 1, 2).clone().requires_grad_(true);
    FusedOptimizer of_two({{"w", alone}}, options);
    const torch::Tensor dense = first_rows();
    FusedOptimizer of_all({{"w", dense}}, options);
    for (int t = 0; t < 3; ++t) {
      const torch::Tensor gradient = torch::sin(t + torch::arange(6, torch::kDouble)).reshape({2, 3});
      const torch::Tensor sparse = torch::sparse_coo_tensor(torch::tensor({{2, 1}}, torch::kLong), gradient, {6, 3});
      torch::Tensor(weight).mutable_grad() = sparse;
      torch::Tensor(alone).mutable_grad() = gradient.flip(0);
      torch::Tensor(dense).mutable_grad() = sparse.to_dense();
      optimizer.step({.learning_rate = 0.1});
      of_two.step({.learning_rate = 0.1});
      of_all.step({.learning_rate = 0.1});
    }
    if (rule == "LAMB") {  // norms of the whole parameter
      EXPECT_TRUE(weight.detach().equal(dense.detach()));
      continue;
    }
    EXPECT_TRUE(torch::allclose(weight.detach().narrow(0, 1, 2), alone.detach(), 1e-12, 1e-14)) << rule;
    EXPECT_TRUE(weight.detach().narrow(0, 3, 3).equal(first_rows().detach().narrow(0, 3, 3))) << rule;
    for (const auto& [name, tensor] : optimizer.state()) {
      if (tensor.dim() == 0) continue;  // num_updates
      EXPECT_EQ(tensor.narrow(0, 3, 3).abs().max().item<double>(), 0) << rule << " " << name;
    }
  }
}

// More rows than a piece holds, rows longer than a piece, gradients of a lower precision, no row at all.
TEST(Optimizer, TakesSparseGradientsOfAnySize) {
  torch::manual_seed(4);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{9000, 5}, {7, 20000}, {50, 3, 4}, {40}}) {
    for (const int64_t count : {0, 1, 6000}) {
      std::vector<int64_t> values = shape;
      values[0] = count;
      const torch::Tensor rows = torch::randint(shape[0], {1, count});
      const torch::Tensor sparse = torch::sparse_coo_tensor(rows, torch::randn(values).to(torch::kBFloat16), shape);
      const torch::Tensor one = torch::ones(shape).requires_grad_(true), two = torch::ones(shape).requires_grad_(true);
      FusedOptimizer first({{"w", one}}, {.name = "Adagrad"}), second({{"w", two}}, {.name = "Adagrad"});
      torch::Tensor(one).mutable_grad() = sparse;
      torch::Tensor(two).mutable_grad() = torch::zeros(shape).index_add(0, rows[0], sparse._values().to(torch::kFloat));
      first.step({.learning_rate = 0.1});
      second.step({.learning_rate = 0.1});
      EXPECT_TRUE(torch::allclose(one.detach(), two.detach(), 1e-4, 1e-4)) << at::IntArrayRef(shape) << count;
    }
  }
}

TEST(Optimizer, ChangesNothingForASparseGradientThatIsNotFinite) {
  const torch::Tensor weight = first_rows();
  FusedOptimizer optimizer({{"w", weight}}, {.name = "SGD", .clip_norm = 1.0});
  torch::Tensor bad = row_gradient(3);
  bad._values()[1][1] = NAN;
  torch::Tensor(weight).mutable_grad() = bad;
  EXPECT_THROW(optimizer.step({.learning_rate = 0.1}), NonFiniteError);
  EXPECT_TRUE(weight.detach().equal(first_rows().detach()));
}

// LAMB's ratio is that of the whole parameter, however many pieces it has and however it ends.
TEST(Optimizer, FollowsTheFormulaOfLambOverManyPieces) {
  torch::manual_seed(5);
  const torch::Tensor start = torch::randn({40003}, torch::kDouble);
  const torch::Tensor grad = torch::randn({40003}, torch::kDouble);
  const torch::Tensor weight = start.clone().requires_grad_(true);
  FusedOptimizer optimizer({{"w", weight}}, {.name = "LAMB", .weight_decay = 0.1, .no_decay = {{}}});
  torch::Tensor(weight).mutable_grad() = grad;
  optimizer.step({.learning_rate = 0.01});
  const torch::Tensor change = grad / (grad.abs() + 1e-8) + 0.1 * start;  // the first update: m = g, v = g^2
  const torch::Tensor expected = start - 0.01 * start.norm() / change.norm() * change;
  EXPECT_TRUE(torch::allclose(weight.detach(), expected, 1e-12, 1e-14));
}

TEST(Optimizer, MatchesNoDecayByPartsOfNames) {
  const auto decayed = [](const std::string& rule, std::optional<std::vector<std::string>> parts) {
    const NamedTensors parameters = {{"block.norm.weight", torch::ones({2}).requires_grad_(true)},
                                     {"block.fc.weight", torch::ones({2, 2}).requires_grad_(true)},
                                     {"block.fc.bias", torch::ones({2}).requires_grad_(true)}};
    FusedOptimizer optimizer(parameters, {.name = rule, .weight_decay = 0.5, .no_decay = std::move(parts)});
    std::string changed;
    for (const auto& [name, weight] : parameters) torch::Tensor(weight).mutable_grad() = torch::zeros_like(weight);
    optimizer.step({.learning_rate = 0.1});
    for (const auto& [name, weight] : parameters) {
      changed += weight.detach().equal(torch::ones_like(weight)) ? "-" : "d";
    }
    return changed;
  };
  EXPECT_EQ(decayed("AdamW", {}), "-d-");
  EXPECT_EQ(decayed("LAMB", {}), "-d-");
  EXPECT_EQ(decayed("SGD", {}), "ddd");
  EXPECT_EQ(decayed("AdamW", {{}}), "ddd");
  EXPECT_EQ(decayed("AdamW", {{"norm"}}), "-dd");
  EXPECT_EQ(decayed("SGD", {{"bias", "norm."}}), "-d-");
  try {
    decayed("SGD", {{"nrom"}});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("'nrom': no parameter"), std::string::npos) << error.what();
  }
}

// A gradient of a lower precision updates as the same numbers in float32 do.
TEST(Optimizer, TakesGradientsOfALowerPrecision) {
  for (const torch::ScalarType low : {torch::kBFloat16, torch::kHalf}) {
    const torch::Tensor one = first_weight();
    const torch::Tensor two = first_weight();
    FusedOptimizer first({{"w", one}}, {.name = "AdamW", .weight_decay = 0.01, .clip_norm = 0.5});
    FusedOptimizer second({{"w", two}}, {.name = "AdamW", .weight_decay = 0.01, .clip_norm = 0.5});
    for (int t = 0; t < 4; ++t) {
      torch::Tensor(one).mutable_grad() = gradient(t).to(low);
      torch::Tensor(two).mutable_grad() = gradient(t).to(low).to(torch::kFloat);
      first.step({.learning_rate = 0.1});
      second.step({.learning_rate = 0.1});
    }
    EXPECT_TRUE(one.detach().equal(two.detach()));
  }
}

TEST(Updater, AveragesAsPyTorchDoesAndLendsTheAverage) {
  const torch::Tensor weight = first_weight();
  const auto make = [](const torch::Tensor& w) {
    return Updater({.optimizer = std::make_unique<FusedOptimizer>(NamedTensors{{"w", w}}, Optimizer::Options{}),
                    .scaler = nullptr,
                    .average = std::make_unique<WeightAverage>(NamedTensors{{"w", w}}, 0.9)});
  };
  Updater updater = make(weight);
  EXPECT_EQ(updater.use_average(), nullptr);
  const torch::Tensor expected = reference().at("average");
  for (int t = 0; t < 20; ++t) {
    torch::Tensor(weight).mutable_grad() = gradient(t);
    updater.step({.learning_rate = 0.1});
    const torch::Tensor own = weight.detach().clone();
    {
      const auto lent = updater.use_average();
      EXPECT_TRUE(torch::allclose(weight.detach(), expected[t], 1e-6, 1e-6)) << t;
    }
    EXPECT_TRUE(weight.detach().equal(own));
  }
  // The average is part of the state.
  std::map<std::string, torch::Tensor> state;
  for (const auto& [name, tensor] : updater.state()) state[name] = tensor.clone();
  const torch::Tensor other = weight.detach().clone().requires_grad_(true);
  Updater resumed = make(other);
  resumed.load_state(state);
  const auto lent = resumed.use_average();
  EXPECT_TRUE(torch::allclose(other.detach(), expected[19], 1e-6, 1e-6));
}

TEST(Optimizer, DoesNotDecayBiasesWithAdamW) {
  const torch::Tensor bias = torch::ones({4}).requires_grad_(true);
  const torch::Tensor weight = torch::ones({2, 2}).requires_grad_(true);
  FusedOptimizer optimizer({{"bias", bias}, {"weight", weight}}, {.name = "AdamW", .weight_decay = 0.5});
  torch::Tensor(bias).mutable_grad() = torch::zeros({4});
  torch::Tensor(weight).mutable_grad() = torch::zeros({2, 2});
  optimizer.step({.learning_rate = 0.1});
  EXPECT_TRUE(bias.detach().equal(torch::ones({4})));
  EXPECT_TRUE(torch::allclose(weight.detach(), torch::full({2, 2}, 0.95)));
}

TEST(Optimizer, TakesGradientsOfAnyLayout) {
  torch::manual_seed(3);
  const torch::Tensor start = torch::randn({8, 4, 3, 3});
  const torch::Tensor grad = torch::randn({8, 4, 3, 3});
  const torch::Tensor plain = start.clone().requires_grad_(true);
  const torch::Tensor last = start.contiguous(torch::MemoryFormat::ChannelsLast).clone().requires_grad_(true);
  ASSERT_NE(plain.strides(), last.strides());
  FusedOptimizer one({{"w", plain}}, {.name = "Adam"});
  FusedOptimizer two({{"w", last}}, {.name = "Adam"});
  for (int i = 0; i < 3; ++i) {
    torch::Tensor(plain).mutable_grad() = grad.clone();
    torch::Tensor(last).mutable_grad() = grad.clone();
    one.step({.learning_rate = 0.1});
    two.step({.learning_rate = 0.1});
  }
  EXPECT_TRUE(plain.detach().equal(last.detach()));
}

TEST(Optimizer, ReportsTheNormAndRejectsNonFiniteBeforeAnyChange) {
  const torch::Tensor weight = torch::ones({40000}).requires_grad_(true);  // several pieces
  FusedOptimizer optimizer({{"w", weight}}, {.name = "SGD", .clip_norm = 1.0});
  torch::Tensor(weight).mutable_grad() = torch::full({40000}, 0.5);
  EXPECT_NEAR(optimizer.step({.learning_rate = 1.0}).gradient_norm.value(), 100.0, 1e-9);
  const torch::Tensor before = weight.detach().clone();
  torch::Tensor bad = torch::zeros({40000});
  bad[39999] = NAN;
  torch::Tensor(weight).mutable_grad() = bad;
  EXPECT_THROW(optimizer.step({.learning_rate = 1.0}), NonFiniteError);
  EXPECT_TRUE(weight.detach().equal(before));
  EXPECT_TRUE(optimizer.step({.learning_rate = 1.0, .skip_non_finite = true}).skipped);
  EXPECT_TRUE(weight.detach().equal(before));
  EXPECT_EQ(optimizer.num_updates(), 1);
}

TEST(Optimizer, SavesAndLoadsItsState) {
  const auto train = [](Optimizer& optimizer, const torch::Tensor& weight, int from, int to) {
    for (int t = from; t < to; ++t) {
      torch::Tensor(weight).mutable_grad() = gradient(t);
      optimizer.step({.learning_rate = 0.05});
    }
  };
  const Optimizer::Options options{.name = "AdamW", .weight_decay = 0.01};
  const torch::Tensor whole = first_weight();
  FusedOptimizer uninterrupted({{"w", whole}}, options);
  train(uninterrupted, whole, 0, 10);

  const torch::Tensor first = first_weight();
  FusedOptimizer before({{"w", first}}, options);
  train(before, first, 0, 4);
  std::map<std::string, torch::Tensor> state;
  for (const auto& [name, tensor] : before.state()) state[name] = tensor.clone();
  const torch::Tensor second = first.detach().clone().requires_grad_(true);
  FusedOptimizer after({{"w", second}}, options);
  after.load_state(state);
  EXPECT_EQ(after.num_updates(), 4);
  train(after, second, 4, 10);
  EXPECT_TRUE(second.detach().equal(whole.detach()));

  state.erase("moment2.w");
  EXPECT_THROW(after.load_state(state), DataError);
  state["moment2.w"] = torch::zeros({3});
  EXPECT_THROW(after.load_state(state), DataError);
}

TEST(Optimizer, RejectsAnUnknownName) { EXPECT_THROW(FusedOptimizer(NamedTensors(), {.name = "Adamw"}), ConfigError); }

}  // namespace
}  // namespace assay
