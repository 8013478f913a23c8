// A plugin that is broken in the way that the environment variable ASSAY_BROKEN names, for
// tests/worker/engine/adapter/plugin_test.cpp.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "engine/adapter/plugin.h"

namespace {

using namespace assay;

bool broken(const char* way) {
  const char* chosen = std::getenv("ASSAY_BROKEN");
  return chosen && std::string(chosen) == way;
}

// Of the processes of a run; alone, too.
bool is_last_process() {
  const char* rank = std::getenv("RANK");
  const char* size = std::getenv("WORLD_SIZE");
  return !rank || !size || std::atoi(rank) + 1 == std::atoi(size);
}

// Hands everything to another network, under other names.
class Wrapped final : public Network {
 public:
  explicit Wrapped(std::shared_ptr<Network> inner) : inner_(register_module("inner", std::move(inner))) {}
  torch::Tensor forward(const TensorList& inputs) override { return inner_->forward(inputs); }

 private:
  std::shared_ptr<Network> inner_;
};

// Forwards, except for what is broken.
class BrokenOptimizer final : public Optimizer {
 public:
  explicit BrokenOptimizer(std::unique_ptr<Optimizer> inner) : inner_(std::move(inner)) {}
  Outcome step(const Update& update) override {
    Update own = update;
    if (broken("never_skips")) own.skip_non_finite = false, own.gradient_scale = 1e30;
    try {
      return inner_->step(own);
    } catch (const NonFiniteError&) {
      if (broken("hides_non_finite")) return {};
      throw;
    }
  }
  void clear_grad() override {
    if (!broken("keeps_gradients")) inner_->clear_grad();
  }
  int64_t num_updates() const override { return inner_->num_updates(); }
  NamedTensors state() const override { return broken("forgets_state") ? NamedTensors{} : inner_->state(); }
  void load_state(const std::map<std::string, torch::Tensor>& state) override {
    if (!broken("forgets_state")) inner_->load_state(state);
  }

 private:
  std::unique_ptr<Optimizer> inner_;
};

class StubbornScaler final : public LossScaler {
 public:
  using LossScaler::LossScaler;
  void update(bool) override {}
};

class BrokenAdapter final : public Adapter {
 public:
  BrokenAdapter() {
    if (broken("factory_throws")) throw std::runtime_error("no licence");
  }
  std::string name() const override { return "broken"; }
  std::vector<DeviceSpec> devices() const override {
    if (broken("negative_peak")) return {{.name = "b1", .peak_flops = {{"float32", -1}}}};
    if (broken("infinite_peak"))
      return {{.name = "b1", .peak_flops = {{"float16", std::numeric_limits<double>::infinity()}}}};
    if (broken("unknown_precision")) return {{.name = "b1", .peak_flops = {{"float23", 1e12}}}};
    if (broken("device_twice")) return {{.name = "b1"}, {.name = "b1"}};
    if (broken("takes_cpu")) return {{.name = "cpu", .peak_flops = {{"float32", 1e15}}}};
    return {};
  }
  std::shared_ptr<Network> convert_model(std::shared_ptr<Network> network) override {
    if (broken("renames")) return std::make_shared<Wrapped>(std::move(network));
    if (broken("no_network")) return nullptr;
    if (broken("changes_values")) {
      for (torch::Tensor& parameter : network->parameters()) parameter.detach().mul_(2);
    }
    if (broken("changes_shapes")) {
      torch::Tensor first = network->parameters()[0];
      first.set_data(first.detach().flatten());
    }
    if (broken("order_throws")) throw std::runtime_error("convert_model does not work here");
    return network;
  }
  std::unique_ptr<Optimizer> create_optimizer(Module& module, const Optimizer::Options& options) override {
    if (broken("no_optimizer")) return nullptr;
    if (broken("forgets_parameter")) module.model().parameters()[0].requires_grad_(false);
    return std::make_unique<BrokenOptimizer>(Adapter::create_optimizer(module, options));
  }
  std::unique_ptr<LowPrecisionWeights> model_to_fp16(Network& network, torch::ScalarType dtype) override {
    if (broken("no_low_weights")) return nullptr;
    return Adapter::model_to_fp16(network, dtype);
  }
  void model_to_ddp(Network& network) override {
    if (broken("ddp_throws")) throw std::runtime_error("model_to_ddp does not work here");
    if (broken("ddp_changes_values")) network.parameters()[0].detach().mul_(2);
  }
  void backward(Module& module, const torch::Tensor& loss) override {
    if (broken("nan_gradients") && is_last_process()) return module.backward(loss * std::nan(""));
    module.backward(broken("wrong_gradients") ? loss * 1.01 : loss);
  }
  std::unique_ptr<LossScaler> create_grad_scaler(const LossScaler::Options& options) override {
    if (broken("no_scaler")) return nullptr;
    if (broken("stubborn_scaler")) return std::make_unique<StubbornScaler>(options);
    return Adapter::create_grad_scaler(options);
  }
};

Adapter* create(char* error, size_t size) {
  if (broken("factory_returns_nothing")) return nullptr;
  return create_guarded([]() -> Adapter* { return new BrokenAdapter(); }, error, size);
}

}  // namespace

// What ASSAY_PLUGIN writes, with every field open to damage.
extern "C" __attribute__((visibility("default"))) const PluginDescriptor* assay_plugin() {
  static PluginDescriptor descriptor;
  descriptor = {
      kPluginMagic, sizeof(PluginDescriptor), kPluginInterface, TORCH_VERSION, ASSAY_PLUGIN_COMPILER, "broken", create};
  if (broken("null_descriptor")) return nullptr;
  if (broken("magic")) descriptor.magic = 1;
  if (broken("size")) descriptor.struct_size = 8;
  if (broken("interface")) descriptor.interface_version = 999;
  if (broken("libtorch")) descriptor.libtorch_version = "1.8.0";
  if (broken("compiler")) descriptor.compiler = "clang with another library";
  if (broken("no_name")) descriptor.name = "";
  if (broken("no_factory")) descriptor.create = nullptr;
  return &descriptor;
}
