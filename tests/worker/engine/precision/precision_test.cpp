// Precision: which type an operator really runs in, how float16 rounds, and what loss scaling is for.
#include "engine/precision/precision.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../toy.h"
#include "base/error.h"
#include "base/files.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/optimizer/fused_optimizer.h"
#include "nn/linear.h"
#include "record/keys.h"

namespace assay {
namespace {

// --- what runs: the type of a result is that of the kernel which made it, and its value shows the rounding

constexpr float kFine = 1.0f + 1.0f / 1024;  // float32 and float16 have it, bfloat16 does not

torch::Tensor in_autocast(const std::function<torch::Tensor()>& run) {
  const AutocastScope scope(torch::kBFloat16);
  return run();
}
torch::Tensor matrix_product() { return torch::mm(torch::full({1, 1}, kFine), torch::ones({1, 1})); }
torch::Tensor clamped() { return torch::clamp_min(torch::full({1}, kFine), 0); }

void expect_bfloat16(const torch::Tensor& t) {
  EXPECT_EQ(t.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(t.item<float>(), 1);
}
void expect_float(const torch::Tensor& t) {
  EXPECT_EQ(t.scalar_type(), torch::kFloat);
  EXPECT_EQ(t.item<float>(), kFine);
}

TEST(OperatorPrecision, ChangesWhatRunsByLists) {
  expect_bfloat16(in_autocast(matrix_product));
  expect_float(in_autocast(clamped));
  {
    const OperatorPrecision lists({.black_list = {"mm"}, .white_list = {"aten::clamp_min"}});
    expect_float(in_autocast(matrix_product));
    expect_bfloat16(in_autocast(clamped));
    // Kept in float32 also when an input is bfloat16 already.
    const torch::Tensor one = torch::ones({1, 1}, torch::kBFloat16);
    expect_float(in_autocast([&] { return torch::mm(torch::full({1, 1}, kFine), one); }));
    expect_float(clamped());  // outside a scope nothing changes
  }
  expect_bfloat16(in_autocast(matrix_product));
  expect_float(in_autocast(clamped));
}

TEST(OperatorPrecision, ReachesTheBackwardPassByLists) {
  const OperatorPrecision lists({.black_list = {}, .white_list = {"tanh"}});
  const torch::Tensor x = torch::linspace(-1, 1, 7).requires_grad_(true);
  torch::Tensor y;
  {
    const AutocastScope scope(torch::kBFloat16);
    y = torch::tanh(x);
  }
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  y.sum().backward();
  EXPECT_EQ(x.grad().scalar_type(), torch::kFloat);
  const torch::Tensor rounded = x.detach().to(torch::kBFloat16).to(torch::kFloat).tanh();
  EXPECT_TRUE(torch::allclose(x.grad(), 1 - rounded * rounded, 0, 0.01));
}

std::string lists_refusal(const OperatorPrecision::Options& options) {
  try {
    const OperatorPrecision made(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(OperatorPrecision, RejectsWhatItCannotDo) {
  EXPECT_EQ(lists_refusal({.black_list = {"sofmax"}}),
            "Engine.mix_precision.custom_black_list 'sofmax': libtorch has no such operator (did you mean 'softmax'?)");
  EXPECT_NE(lists_refusal({.white_list = {"relu_"}}).find("changes it in place"), std::string::npos);
  EXPECT_NE(lists_refusal({.white_list = {"transpose"}}).find("a part of its argument"), std::string::npos);
  EXPECT_NE(lists_refusal({.black_list = {"mm"}, .white_list = {"aten::mm"}}).find("keep one"), std::string::npos);
  EXPECT_EQ(lists_refusal({.black_list = {"reduce_sum", "elementwise_div", "c_softmax_with_cross_entropy"},
                           .white_list = {"lookup_table_v2"}}),
            "nothing was refused");  // the lists of FleetX's GPT
  // What libtorch has no kernel for is named when it runs.
  const OperatorPrecision lists({.white_list = {"linalg_qr"}});
  const AutocastScope scope(torch::kBFloat16);
  EXPECT_THROW(torch::linalg_qr(torch::ones({2, 2})), ConfigError);
}

// --- emulated float16

// The nearest float16 by the definition of IEEE 754: 11 significant bits, exponents from -14, ties to even.
double nearest_half(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), -14);
  const double unit = std::ldexp(1.0, exponent - 10);
  const double rounded = std::nearbyint(x / unit) * unit;
  return std::fabs(rounded) > 65504 ? std::copysign(INFINITY, x) : rounded;
}

TEST(Float16, RoundsAsIeeeHalfDoes) {
  const OperatorPrecision half({.dtype = torch::kHalf});
  const AutocastScope scope(torch::kHalf);
  const std::vector<double> values = {
      0,      1,    -1.0009765625,      1.00048828125,      1.0004883, 65504,  65519,  65520,
      -70000, 1e30, std::ldexp(1, -24), std::ldexp(1, -25), 3e-8,      2.9e-8, 6.1e-5, 5.9e-8,
      -4e-8,  0.1};
  for (const double value : values) {
    // One factor is 1, so the product shows how input and output are rounded.
    const torch::Tensor y = torch::mm(torch::full({1, 1}, value), torch::ones({1, 1}));
    EXPECT_EQ(y.scalar_type(), torch::kHalf);
    EXPECT_EQ(y.item<double>(), nearest_half(static_cast<float>(value))) << value;
  }
}

TEST(Float16, ComputesInFloat32AndRoundsResults) {
  torch::manual_seed(1);
  const torch::Tensor a = torch::randn({5, 300});
  const torch::Tensor b = torch::randn({300, 4});
  const auto round = [](const torch::Tensor& t) { return t.to(torch::kHalf).to(torch::kFloat); };
  const OperatorPrecision half({.dtype = torch::kHalf});
  const AutocastScope scope(torch::kHalf);
  const torch::Tensor product = torch::mm(a, b);
  EXPECT_TRUE(product.to(torch::kFloat).equal(round(torch::mm(round(a), round(b)).to(torch::kFloat))));
  // Half with half stays half; half with float32 becomes float32; a scalar does not widen.
  EXPECT_EQ((product * product).scalar_type(), torch::kHalf);
  EXPECT_TRUE((product * product).to(torch::kFloat).equal(round(product.to(torch::kFloat).square())));
  EXPECT_EQ((product + torch::ones({5, 4})).scalar_type(), torch::kFloat);
  EXPECT_EQ((product * 2).scalar_type(), torch::kHalf);
  EXPECT_EQ((product * torch::tensor(2.0f)).scalar_type(), torch::kHalf);
  // In place, and through a view.
  const torch::Tensor other = torch::mm(a, b);
  other.t().relu_();
  EXPECT_TRUE(other.to(torch::kFloat).equal(product.to(torch::kFloat).clamp_min(0)));
  // What is not safe runs in float32.
  EXPECT_EQ(torch::softmax(product, 1).scalar_type(), torch::kFloat);
  EXPECT_EQ(torch::layer_norm(product, {4}).scalar_type(), torch::kFloat);
  // 300 is finite in float16, its square is not.
  const torch::Tensor large = torch::mm(torch::full({1, 1}, 300.0), torch::ones({1, 1}));
  EXPECT_TRUE(std::isinf((large * large).item<double>()));
}

TEST(Float16, ChangesWhatRunsByLists) {
  const auto product = [] { return torch::mm(torch::ones({1, 1}), torch::ones({1, 1})); };
  {
    const OperatorPrecision lists({.dtype = torch::kHalf, .black_list = {"mm"}, .white_list = {"softmax"}});
    const AutocastScope scope(torch::kHalf);
    EXPECT_EQ(product().scalar_type(), torch::kFloat);
    EXPECT_EQ(torch::softmax(torch::ones({2, 2}), 1).scalar_type(), torch::kHalf);
  }
}

// The gradient of each operator's output and input is a float16 number too.
TEST(Float16, RoundsAndVanishesInTheBackwardPass) {
  const auto gradient = [](double upstream) {
    const OperatorPrecision half({.dtype = torch::kHalf});
    const torch::Tensor w = torch::full({1, 1}, 1.0).requires_grad_(true);
    torch::Tensor y;
    {
      const AutocastScope scope(torch::kHalf);
      y = torch::mm(torch::full({1, 1}, 0.3), w);
    }
    (y.to(torch::kFloat) * upstream).sum().backward();
    return w.grad().item<double>();
  };
  EXPECT_EQ(gradient(1e-9), 0);        // below half of 2^-24
  EXPECT_EQ(gradient(1e9), INFINITY);  // above 65504
  const double x = nearest_half(0.3f);
  EXPECT_EQ(gradient(0.7f), nearest_half(nearest_half(0.7f) * x));
}

// The product of a layer is `linear`, whatever the layout of its weight and whether three stand side by side.
TEST(OperatorPrecision, ReachesProductsOfLayersByLists) {
  const torch::Tensor x = torch::full({1, 1, 1}, kFine), weight = torch::ones({1, 1});
  const std::vector<std::function<torch::Tensor()>> products = {
      [&] { return linear(x, weight, WeightLayout::OutIn); }, [&] { return linear(x, weight, WeightLayout::InOut); },
      [&] { return linear3(x, weight, weight, weight).slice(-1, 0, 1); },
      [&] { return affine(x, weight, torch::zeros({1})); }};
  for (const auto& product : products) expect_bfloat16(in_autocast(product));
  const OperatorPrecision lists({.black_list = {"linear"}});
  for (const auto& product : products) expect_float(in_autocast(product));
}

TEST(OperatorPrecision, KnowsWhichOfTheListsDidNotRun) {
  for (const torch::ScalarType dtype : {torch::kBFloat16, torch::kHalf}) {
    OperatorPrecision lists(
        {.dtype = dtype, .black_list = {"mm", "reduce_sum"}, .white_list = {"aten::clamp_min", "tanh"}});
    matrix_product();  // outside of a scope it does not count
    {
      const AutocastScope scope(dtype);
      torch::ones({2}).sum();
      clamped();
    }
    EXPECT_EQ(lists.end_watch({"mm", "reduce_sum", "aten::clamp_min", "tanh"}),
              (std::vector<std::string>{"mm", "tanh"}));
  }
}

// --- the engine

EngineOptions mixed_options(torch::ScalarType dtype, bool low_weights) {
  EngineOptions options = toy_options();
  options.precision.mixed = dtype;
  options.precision.low_weights = low_weights;
  if (dtype == torch::kHalf) options.precision.scaling = LossScaler::Options{};
  return options;
}

torch::Tensor weights_of(ToyModule& module) {
  return torch::cat({module.model().parameters()[0].flatten(), module.model().parameters()[1]}).detach().clone();
}

// How far the weights move in 5 steps when the loss is 1e-7 of what it should be.
double movement(const PrecisionOptions& precision) {
  const auto module = toy_module();
  module->on_loss = [](const torch::Tensor& loss) { return loss * 1e-7; };
  EngineOptions options = toy_options();
  options.precision = precision;
  options.optimizer.name = "SGD";
  options.schedule.learning_rate = 1e6;
  options.max_steps = 5;
  const torch::Tensor before = weights_of(*module);
  Engine engine(*module, options, {});
  const auto train = toy_loader();
  engine.fit(*train, nullptr);
  return (weights_of(*module) - before).norm().item<double>();
}

class IdleObserver final : public EngineObserver {
 public:
  std::vector<Json> told;
  void on_event(std::string_view name, const Json& data) override {
    if (name == keys::kIdleOperators) told.push_back(data.at("operators"));
  }
};

TEST(Precision, ReportsAListedOperatorThatTheFirstStepDoesNotRun) {
  const auto told = [](const std::vector<std::string>& black, const std::vector<std::string>& white) {
    const auto module = toy_module();
    EngineOptions options = mixed_options(torch::kBFloat16, false);
    options.precision.black_list = black;
    options.precision.white_list = white;
    IdleObserver idle;
    Engine engine(*module, options, {.checkpoint_folder = {}, .label = {}, .target = {}, .observers = {&idle}});
    engine.fit(*toy_loader(), nullptr);
    return idle.told;
  };
  EXPECT_EQ(told({"addmm"}, {}), std::vector<Json>{});  // what torch::nn::Linear calls
  EXPECT_EQ(told({}, {}), std::vector<Json>{});
  EXPECT_EQ(told({"addmm", "conv2d"}, {"tanh"}), (std::vector<Json>{{"conv2d", "tanh"}}));  // once
}

TEST(LossScaling, KeepsGradientsThatWouldVanish) {
  const double exact = movement({});
  EXPECT_GT(exact, 0.01);
  EXPECT_EQ(movement({.mixed = torch::kHalf}), 0);
  EXPECT_EQ(movement({.mixed = torch::kHalf, .low_weights = true}), 0);
  EXPECT_NEAR(movement({.mixed = torch::kHalf, .scaling = LossScaler::Options{}}), exact, 0.01 * exact);
  EXPECT_NEAR(movement({.mixed = torch::kHalf, .low_weights = true, .scaling = LossScaler::Options{}}), exact,
              0.01 * exact);
  const LossScaler::Options fixed{.initial = 32768, .dynamic = false};
  EXPECT_NEAR(movement({.mixed = torch::kHalf, .scaling = fixed}), exact, 0.01 * exact);
  EXPECT_EQ(movement({.mixed = torch::kHalf, .scaling = LossScaler::Options{.initial = 1, .dynamic = false}}), 0);
  EXPECT_NEAR(movement({.mixed = torch::kBFloat16}), exact, 0.02 * exact);  // its range is that of float32
}

class SkipObserver final : public EngineObserver {
 public:
  std::vector<int64_t> steps;
  std::vector<double> next_scales;
  void on_event(std::string_view name, const Json& data) override {
    if (name != keys::kStepSkipped) return;
    steps.push_back(data.at(keys::kGlobalStep).get<int64_t>());
    next_scales.push_back(data.at("next_scale").get<double>());
  }
};

TEST(LossScaling, SkipsStepsThatOverflowAndBacksOff) {
  const auto module = toy_module();
  module->on_loss = [](const torch::Tensor& loss) { return loss * 30; };  // 30 * 32768 / 8 is beyond 65504
  EngineOptions options = mixed_options(torch::kHalf, false);
  options.schedule.learning_rate = 0.001;
  options.max_steps = 10;
  options.logging_freq = 5;
  SkipObserver skips;
  Engine engine(*module, options, {.checkpoint_folder = {}, .label = {}, .target = {}, .observers = {&skips}});
  const auto train = toy_loader();
  const torch::Tensor before = weights_of(*module);
  engine.fit(*train, nullptr);
  ASSERT_GE(skips.steps.size(), 1u);
  ASSERT_LT(skips.steps.size(), 5u);
  EXPECT_EQ(skips.steps[0], 1);
  EXPECT_EQ(skips.next_scales[0], 16384);
  const auto skipped = static_cast<int64_t>(skips.steps.size());
  EXPECT_EQ(engine.state().global_step, 10);
  EXPECT_EQ(engine.optimizer().num_updates(), 10 - skipped);
  EXPECT_EQ(module->logs[0].found_inf, skipped);
  EXPECT_EQ(module->logs[1].found_inf, 0);
  EXPECT_EQ(module->logs[1].loss_scale, std::ldexp(32768, -static_cast<int>(skipped)));
  EXPECT_FALSE(weights_of(*module).equal(before));
  EXPECT_TRUE(weights_of(*module).isfinite().all().item<bool>());
}

// A static scale skips the step that overflows, stays what it is, and training goes on.
TEST(LossScaling, SurvivesOneOverflowWithAStaticScale) {
  const auto module = toy_module();
  int calls = 0;
  std::vector<torch::Tensor> weights;  // at the beginning of each step
  module->on_loss = [&](const torch::Tensor& loss) {
    weights.push_back(weights_of(*module));
    return ++calls == 3 ? loss * 1e6 : loss;
  };
  EngineOptions options = mixed_options(torch::kHalf, false);
  options.precision.scaling = LossScaler::Options{.initial = 1024, .dynamic = false};
  options.max_steps = 6;
  SkipObserver skips;
  Engine engine(*module, options, {.checkpoint_folder = {}, .label = {}, .target = {}, .observers = {&skips}});
  engine.fit(*toy_loader(), nullptr);
  EXPECT_EQ(skips.steps, std::vector<int64_t>{3});
  EXPECT_EQ(skips.next_scales, std::vector<double>{1024});
  EXPECT_EQ(engine.optimizer().loss_scale(), 1024);
  EXPECT_EQ(engine.optimizer().num_updates(), 5);
  ASSERT_EQ(weights.size(), 6u);
  EXPECT_TRUE(weights[3].equal(weights[2]));
  for (const size_t step : {1, 2, 4, 5}) EXPECT_FALSE(weights[step].equal(weights[step - 1])) << step;
  EXPECT_TRUE(weights_of(*module).isfinite().all().item<bool>());
}

TEST(LossScaling, FailsWhenNotFiniteAtScaleOne) {
  const auto run = [](std::optional<LossScaler::Options> scaling, double factor) {
    const auto module = toy_module();
    module->on_loss = [factor](const torch::Tensor& loss) { return loss * factor; };
    EngineOptions options = mixed_options(torch::kHalf, false);
    options.precision.scaling = scaling;
    options.num_epochs = 10;
    Engine engine(*module, options, {});
    const torch::Tensor before = weights_of(*module);
    const auto train = toy_loader();
    try {
      engine.fit(*train, nullptr);
    } catch (const NonFiniteError& error) {
      EXPECT_TRUE(weights_of(*module).equal(before));
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(run({}, NAN).find("the loss is nan at step 1 (epoch 0, batch 1)"), std::string::npos);
  // 32768 halves 15 times; the sixteenth step finds nothing smaller to try.
  EXPECT_NE(run(LossScaler::Options{}, NAN)
                .find("step 16 (epoch 3, batch 1): gradients or loss are not finite even at "
                      "loss scale 1"),
            std::string::npos)
      << run(LossScaler::Options{}, NAN);
  EXPECT_NE(run(LossScaler::Options{.initial = 32768, .dynamic = false}, 1e9).find("16 steps in a row"),
            std::string::npos);
}

TEST(LossScaler, GrowsAndFallsByItsFormula) {
  LossScaler scaler({.initial = 8, .growth = 4, .backoff = 0.25, .growth_interval = 3, .backoff_interval = 2});
  const auto after = [&](std::initializer_list<bool> found) {
    for (const bool found_inf : found) scaler.update(found_inf);
    return scaler.scale();
  };
  EXPECT_EQ(after({false, false}), 8);
  EXPECT_EQ(after({false}), 32);
  EXPECT_EQ(after({false, false, true}), 32);  // one overflow of two; the count of good steps begins anew
  EXPECT_EQ(after({true}), 8);
  EXPECT_EQ(after({false, false}), 8);
  std::map<std::string, torch::Tensor> state;
  for (const auto& [name, tensor] : scaler.state()) state[name] = tensor.clone();
  LossScaler other({.initial = 2, .growth = 4, .growth_interval = 3});
  other.load_state(state);
  other.update(false);
  EXPECT_EQ(other.scale(), 32);
  EXPECT_EQ(after({true, true, true, true}), 1);  // never below 1
  EXPECT_THROW(after({true, true}), NonFiniteError);
  state.erase("scaler.good_steps");
  EXPECT_THROW(other.load_state(state), DataError);
  EXPECT_THROW(LossScaler({.growth = 1}), ConfigError);
  EXPECT_THROW(LossScaler({.backoff = 1}), ConfigError);
  EXPECT_THROW(LossScaler({.initial = 0.5}), ConfigError);
}

TEST(Precision, ComputesO2WithLowWeightsAndKeepsFloat32Ones) {
  for (const torch::ScalarType dtype : {torch::kBFloat16, torch::kHalf}) {
    const TempFolder folder("o2");
    const auto module = toy_module();
    std::set<torch::ScalarType> inside;
    module->on_loss = [&](const torch::Tensor& loss) {
      inside.insert(module->model().parameters()[0].scalar_type());
      EXPECT_EQ(module->model().parameters()[1].scalar_type(), torch::kFloat);  // the bias
      return loss;
    };
    EngineOptions options = mixed_options(dtype, true);
    options.schedule.learning_rate = 1e-4;  // less than what bfloat16 weights could show
    Engine engine(*module, options, {.checkpoint_folder = folder.path(), .label = {}, .target = {}, .observers = {}});
    const torch::Tensor before = weights_of(*module);
    const auto train = toy_loader();
    engine.fit(*train, nullptr);
    EXPECT_EQ(inside, std::set<torch::ScalarType>{dtype});
    const torch::Tensor after = weights_of(*module);
    EXPECT_EQ(after.scalar_type(), torch::kFloat);
    const double moved = (after - before).abs().max().item<double>();
    EXPECT_GT(moved, 0);
    EXPECT_LT(moved, 1e-2);
    EXPECT_FALSE(after.to(dtype).to(torch::kFloat).equal(after));  // there is more in them than the low ones hold
  }
}

// Ten steps at once, and five, a checkpoint, a new process' worth of objects, and five more: bitwise the same.
TEST(Precision, ResumesExactlyInEveryPrecision) {
  std::vector<EngineOptions> all;
  for (const torch::ScalarType dtype : {torch::kBFloat16, torch::kHalf}) {
    for (const bool low_weights : {false, true}) all.push_back(mixed_options(dtype, low_weights));
  }
  all.push_back(toy_options());
  all.back().precision.dtype = torch::kDouble;
  for (EngineOptions options : all) {
    const std::string name = precision_name(options.precision) + (options.precision.low_weights ? " O2" : "");
    options.optimizer.name = "AdamW";
    options.optimizer.ema_decay = 0.8;
    if (options.precision.scaling) options.precision.scaling->growth_interval = 3;
    const auto run = [&](const fs::path& folder, int64_t max_steps, double* scale) {
      const auto module = toy_module();
      options.max_steps = max_steps;
      options.save_steps = 5;
      Engine engine(*module, options, {.checkpoint_folder = folder, .label = {}, .target = {}, .observers = {}});
      engine.resume();
      const auto train = toy_loader();
      engine.fit(*train, nullptr);
      *scale = engine.optimizer().loss_scale();
      const torch::Tensor weights = weights_of(*module);
      engine.adopt_average();
      return torch::cat({weights, weights_of(*module)});
    };
    const TempFolder once("once");
    const TempFolder twice("twice");
    double scale = 0;
    double resumed_scale = 0;
    const torch::Tensor whole = run(once.path(), 10, &scale);
    run(twice.path(), 5, &resumed_scale);
    EXPECT_TRUE(run(twice.path(), 10, &resumed_scale).equal(whole)) << name;
    EXPECT_EQ(scale, resumed_scale) << name;
    EXPECT_EQ(scale > 32768, options.precision.scaling.has_value()) << name;
  }
}

TEST(Precision, KeepsFloat64Throughout) {
  const auto module = toy_module();
  module->model().eval();
  for (const auto& child : module->model().children()) {
    if (auto* dropout = dynamic_cast<torch::nn::DropoutImpl*>(child.get())) dropout->options.p(0);
  }
  const torch::Tensor weight = module->model().parameters()[0].detach().to(torch::kDouble).requires_grad_(true);
  const torch::Tensor bias = module->model().parameters()[1].detach().to(torch::kDouble).requires_grad_(true);
  EngineOptions options = toy_options();
  options.precision.dtype = torch::kDouble;
  options.optimizer.name = "SGD";
  options.max_steps = 1;
  torch::ScalarType loss_type = torch::kFloat;
  module->on_loss = [&](const torch::Tensor& loss) {
    loss_type = loss.scalar_type();
    return loss;
  };
  Engine engine(*module, options, {});
  const auto train = toy_loader(8, false);
  engine.fit(*train, nullptr);
  // One step of gradient descent on softmax and cross entropy, by its formula.
  const int64_t indices[] = {0, 1, 2, 3, 4, 5, 6, 7};
  const Batch batch = ToyData(8).gather(indices, 0);
  const torch::Tensor x = batch.tensors[0].to(torch::kDouble);
  const torch::Tensor p = torch::softmax(x.mm(weight.detach().t()) + bias.detach(), 1);
  const torch::Tensor error = (p - torch::one_hot(batch.tensors[1], 3).to(torch::kDouble)) / 8;
  const torch::Tensor expected = weight.detach() - 0.1 * error.t().mm(x);
  EXPECT_EQ(loss_type, torch::kDouble);
  EXPECT_EQ(module->model().parameters()[0].scalar_type(), torch::kDouble);
  EXPECT_LT((module->model().parameters()[0].detach() - expected).abs().max().item<double>(), 1e-15);
}

TEST(Precision, UsesTheAverageInEvaluationAndNotInTraining) {
  const auto module = toy_module();
  EngineOptions options = toy_options();
  options.optimizer.ema_decay = 0.5;
  options.max_steps = 4;
  Engine engine(*module, options, {});
  const auto train = toy_loader();
  const auto eval = toy_loader(8, false);
  engine.fit(*train, nullptr);
  const torch::Tensor trained = weights_of(*module);
  const double averaged_loss = engine.evaluate(*eval, std::nullopt).metrics.at("loss");
  EXPECT_TRUE(weights_of(*module).equal(trained));
  engine.adopt_average();
  EXPECT_FALSE(weights_of(*module).equal(trained));
  module->model().eval();
  const torch::NoGradGuard no_grad;
  eval->start(0);
  EXPECT_NEAR(module->validation_step(*eval->next()).loss.item<double>(), averaged_loss, 1e-9);
}

TEST(Precision, CountsSamplesInSchedules) {
  const auto module = toy_module();
  EngineOptions options = toy_options();
  options.schedule.name = "linear";
  options.schedule_by_samples = true;
  options.schedule.decay_steps = 86;
  options.local_batch_size = 8;
  Engine engine(*module, options, {});
  const auto train = toy_loader(43);  // five batches of 8 and one of 3, twice
  engine.fit(*train, nullptr);
  std::vector<double> rates;
  for (const TrainLog& log : module->logs) rates.push_back(log.learning_rate);
  ASSERT_EQ(rates.size(), 12u);
  EXPECT_NEAR(rates[5], 0.1 * (1 - 40.0 / 86), 1e-12);
  EXPECT_NEAR(rates[6], 0.1 * (1 - 43.0 / 86), 1e-12);
  EXPECT_NEAR(rates[11], 0.1 * (1 - 83.0 / 86), 1e-12);
}

}  // namespace
}  // namespace assay
