// A registered adapter that writes down every call and returns something of its own from each: the exact order, and
// that the engine uses what it was given.
#include "engine/adapter/adapter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "../toy.h"
#include "base/error.h"
#include "engine/adapter/plugin.h"
#include "record/keys.h"

namespace assay {
namespace {

using Calls = std::vector<std::string>;

class RecordingOptimizer final : public Optimizer {
 public:
  RecordingOptimizer(std::unique_ptr<Optimizer> inner, Calls& calls) : inner_(std::move(inner)), calls_(calls) {}
  Outcome step(const Update& update) override {
    calls_.push_back(fmt::format("step, gradients {} times too large", update.gradient_scale));
    return inner_->step(update);
  }
  void clear_grad() override {
    calls_.emplace_back("clear_grad");
    inner_->clear_grad();
  }
  int64_t num_updates() const override { return inner_->num_updates(); }
  NamedTensors state() const override { return inner_->state(); }
  void load_state(const std::map<std::string, torch::Tensor>& state) override { inner_->load_state(state); }

 private:
  std::unique_ptr<Optimizer> inner_;
  Calls& calls_;
};

class RecordingWeights final : public LowPrecisionWeights {
 public:
  RecordingWeights(std::vector<torch::Tensor> parameters, torch::ScalarType dtype, Calls& calls)
      : LowPrecisionWeights(std::move(parameters), dtype), calls_(calls) {}
  std::unique_ptr<WeightSwap> use() override {
    calls_.emplace_back("low weights");
    return LowPrecisionWeights::use();
  }

 private:
  Calls& calls_;
};

class RecordingScaler final : public LossScaler {
 public:
  RecordingScaler(const Options& options, Calls& calls) : LossScaler(options), calls_(calls) {}
  double scale() const override { return 4; }
  void update(bool found_inf) override { calls_.push_back(found_inf ? "overflow" : "no overflow"); }

 private:
  Calls& calls_;
};

class RecordingAdapter final : public Adapter {
 public:
  Calls calls;
  std::shared_ptr<Network> made;  // the network that convert_model returned

  std::string name() const override { return "recording"; }
  std::shared_ptr<Network> convert_model(std::shared_ptr<Network> network) override {
    calls.emplace_back("convert_model");
    auto* toy = dynamic_cast<ToyNetwork*>(network.get());
    if (!toy) return network;  // another test's
    made = std::make_shared<ToyNetwork>();
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < 2; ++i) made->parameters()[i].copy_(network->parameters()[i]);
    return made;
  }
  std::unique_ptr<Optimizer> create_optimizer(Module& module, const Optimizer::Options& options) override {
    calls.push_back("create_optimizer " + options.name);
    return std::make_unique<RecordingOptimizer>(Adapter::create_optimizer(module, options), calls);
  }
  std::unique_ptr<LowPrecisionWeights> model_to_fp16(Network& network, torch::ScalarType dtype) override {
    calls.push_back(std::string("model_to_fp16 ") + c10::toString(dtype) + of(network));
    return std::make_unique<RecordingWeights>(std::vector<torch::Tensor>{network.parameters()[0]}, dtype, calls);
  }
  void model_to_ddp(Network& network) override { calls.push_back("model_to_ddp" + of(network)); }
  void backward(Module& module, const torch::Tensor& loss) override {
    calls.push_back(std::string("backward in ") + c10::toString(module.model().parameters()[0].scalar_type()));
    losses.push_back(loss.item<double>());
    module.backward(loss);
  }
  std::unique_ptr<LossScaler> create_grad_scaler(const LossScaler::Options& options) override {
    calls.emplace_back("create_grad_scaler");
    return std::make_unique<RecordingScaler>(options, calls);
  }

  std::vector<double> losses;  // as backward got them

 private:
  std::string of(const Network& network) const { return &network == made.get() ? " of the converted network" : ""; }
};

// Registered once in a process, however often the tests run.
LoadedAdapter recording_adapter() {
  static const bool registered = [] {
    register_adapter("recording", [] { return std::make_unique<RecordingAdapter>(); });
    return true;
  }();
  EXPECT_TRUE(registered);
  return make_adapter("recording");
}

class AdapterEvents final : public EngineObserver {
 public:
  explicit AdapterEvents(Calls& calls) : calls_(calls) {}
  void on_event(std::string_view name, const Json& data) override {
    if (data.contains("adapter")) calls_.push_back(fmt::format("{} {}", name, data.at("adapter").get<std::string>()));
  }

 private:
  Calls& calls_;
};

TEST(Adapter, CallsEveryHookInOrderAndUsesWhatItReturns) {
  const LoadedAdapter loaded = recording_adapter();
  EXPECT_EQ(loaded.name, "recording");
  EXPECT_TRUE(loaded.library.empty());
  auto& adapter = dynamic_cast<RecordingAdapter&>(*loaded.adapter);
  const auto module = toy_module();
  std::vector<double> losses;  // of the module
  module->on_loss = [&](const torch::Tensor& loss) {
    losses.push_back(loss.item<double>());
    return loss;
  };
  EngineOptions options = toy_options();
  options.max_steps = 1;
  options.accumulate_steps = 2;
  options.precision.mixed = torch::kHalf;
  options.precision.low_weights = true;
  options.precision.scaling = LossScaler::Options{};
  AdapterEvents events(adapter.calls);
  EngineServices services;
  services.adapter = &adapter;
  services.observers = {&events};
  Engine engine(*module, options, services);
  EXPECT_EQ(&module->model(), adapter.made.get());
  EXPECT_EQ(engine.optimizer().loss_scale(), 4);
  engine.fit(*toy_loader(16), nullptr);
  EXPECT_EQ(adapter.calls,
            (Calls{"convert_model", "CONVERT_MODEL recording", "create_optimizer Momentum",
                   "CREATE_OPTIMIZER recording", "model_to_fp16 Half of the converted network",
                   "MODEL_TO_FP16 recording", "model_to_ddp of the converted network", "MODEL_TO_DDP recording",
                   "create_grad_scaler", "low weights", "backward in Half", "backward in Half",
                   "step, gradients 4 times too large", "no overflow", "clear_grad"}));
  ASSERT_EQ(losses.size(), 2u);
  ASSERT_EQ(adapter.losses.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(adapter.losses[i], losses[i] * 4 / 2, 1e-6);  // scale, share
}

TEST(Adapter, RejectsANameThatIsTaken) {
  const auto refusal = [](const std::string& name) -> std::string {
    try {
      register_adapter(name, [] { return std::make_unique<Adapter>(); });
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "registered";
  };
  recording_adapter();
  EXPECT_EQ(refusal("recording"), "adapter 'recording': a class of this name already exists");
  EXPECT_EQ(refusal("default"), "adapter 'default': a class of this name already exists");
  EXPECT_NE(refusal("").find("needs a name"), std::string::npos);
  EXPECT_NE(refusal("lib/own.so").find("not that of a library"), std::string::npos);
}

}  // namespace
}  // namespace assay
