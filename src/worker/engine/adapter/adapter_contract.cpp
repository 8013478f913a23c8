#include "engine/adapter/adapter_contract.h"

#include <fmt/format.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "engine/loop/engine.h"
#include "record/keys.h"

namespace assay {

namespace {

constexpr int64_t kContractSamples = 32;
constexpr int64_t kContractBatch = 8;
constexpr int64_t kContractSteps = 12;

// Two layers with a normalisation between them: matrices, biases, and weights of one dimension.
class ContractNetwork final : public Network {
 public:
  ContractNetwork()
      : first_(register_module("first", torch::nn::Linear(6, 10))),
        norm_(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({10})))),
        second_(register_module("second", torch::nn::Linear(10, 3))),
        scale_(register_parameter("scale", torch::ones({1, 3}))) {}
  torch::Tensor forward(const TensorList& inputs) override {
    return second_->forward(norm_->forward(first_->forward(inputs.at(0))).relu()) * scale_;
  }

 private:
  torch::nn::Linear first_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear second_;
  torch::Tensor scale_;
};

class ContractModule final : public Module {
 public:
  std::vector<double> losses;
  double loss_factor = 1;
  double gradient_factor = 1;  // of the gradients alone

  std::shared_ptr<Network> get_model() override { return std::make_shared<ContractNetwork>(); }
  LossFunction get_loss_fn() override {
    return [](const torch::Tensor& x, const torch::Tensor& y) {
      return torch::nn::functional::cross_entropy(x.to(torch::kFloat), y);
    };
  }
  std::vector<InputSpec> input_spec() const override { return {{.name = "x", .shape = {-1, 6}}}; }
  torch::Tensor training_step(const Batch& batch) override {
    const torch::Tensor loss = Module::training_step(batch) * loss_factor;
    losses.push_back(loss.item<double>());
    if (gradient_factor != 1) {
      loss.register_hook([factor = gradient_factor](const torch::Tensor& gradient) { return gradient * factor; });
    }
    return loss;
  }
  void training_step_end(const TrainLog&) override {}
  void validation_step_end(const EvalLog&) override {}
};

// Class i % 3, with the class as a large number among noise.
class ContractData final : public Dataset {
 public:
  int64_t size() const override { return kContractSamples; }
  std::string hash() const override { return "contract"; }
  Batch gather(std::span<const int64_t> indices, int64_t /*epoch*/) const override {
    const auto count = static_cast<int64_t>(indices.size());
    torch::Tensor x = torch::zeros({count, 6});
    torch::Tensor y = torch::zeros({count}, torch::kLong);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = indices[static_cast<size_t>(i)];
      y[i] = index % 3;
      for (int64_t k = 0; k < 6; ++k) {
        x[i][k] = (k == index % 3 ? 2.0f : 0.0f) + static_cast<float>((index * 31 + k * 17) % 10) * 0.05f;
      }
    }
    return {{x, y}, count};
  }
};

std::unique_ptr<ContractModule> contract_module() {
  torch::manual_seed(17);
  auto module = std::make_unique<ContractModule>();
  module->init();
  return module;
}

std::unique_ptr<Loader> contract_loader() {
  return std::make_unique<Loader>(
      std::make_shared<ContractData>(),
      Sampler::Options{
          .num_samples = kContractSamples, .batch_size = kContractBatch, .shuffle = true, .drop_last = true, .seed = 5},
      Loader::Options{.num_workers = 0, .prefetch = 1});
}

EngineOptions contract_options(const std::string& rule, int64_t max_steps = kContractSteps) {
  EngineOptions options;
  options.num_epochs = 100;
  options.max_steps = max_steps;
  options.local_batch_size = kContractBatch;
  options.optimizer.name = rule;
  options.optimizer.weight_decay = 0.001;
  options.schedule.learning_rate = rule == "SGD" || rule == "Adagrad" ? 0.1 : 0.02;
  options.schedule.decay_steps = 0;
  return options;
}

EngineServices services_for(Adapter& adapter) {
  EngineServices services;
  services.adapter = &adapter;
  return services;
}

// A broken promise.
[[noreturn]] void broken(const std::string& what) { throw ConfigError(what); }

NamedTensors copies_of(const Network& network) {
  NamedTensors copies;
  for (const auto& item : network.named_parameters()) copies.emplace_back(item.key(), item.value().detach().clone());
  return copies;
}

void check_devices(Adapter& adapter) {
  DeviceRegistry registry;
  for (const DeviceSpec& device : adapter.devices()) registry.add(device, adapter.name());
}

// The events of adapters, in the order in which they should come.
constexpr std::array kAdapterEvents = {keys::kConvertModel, keys::kCreateOptimizer, keys::kModelToFp16,
                                       keys::kModelToDdp};

class EventList final : public EngineObserver {
 public:
  std::vector<std::string> events;
  void on_event(std::string_view name, const Json&) override {
    if (std::find(kAdapterEvents.begin(), kAdapterEvents.end(), name) != kAdapterEvents.end())
      events.emplace_back(name);
  }
};

void check_order(Adapter& adapter) {
  const auto module = contract_module();
  EngineOptions options = contract_options("SGD");
  options.precision.mixed = torch::kBFloat16;
  options.precision.low_weights = true;
  EventList list;
  EngineServices services = services_for(adapter);
  services.observers = {&list};
  const Engine engine(*module, options, services);
  if (list.events != std::vector<std::string>(kAdapterEvents.begin(), kAdapterEvents.end()))
    broken("events were " + join(list.events, ", "));
}

void check_parameters(Adapter& adapter) {
  const auto module = contract_module();
  const NamedTensors before = copies_of(module->model());
  const Engine engine(*module, contract_options("SGD"), services_for(adapter));
  const NamedTensors after = copies_of(module->model());
  for (size_t i = 0; i < before.size(); ++i) {  // names and shapes are the engine's own check
    if (!after[i].second.equal(before[i].second)) broken("the hooks changed the values of " + before[i].first);
  }
}

void check_gradients(Adapter& adapter) {
  const auto module = contract_module();
  const auto plain = contract_module();
  const Engine engine(*module, contract_options("SGD"), services_for(adapter));
  const int64_t indices[] = {0, 1, 2, 3, 4, 5, 6, 7};
  const Batch batch = ContractData().gather(indices, 0);
  for (int round = 0; round < 2; ++round) {
    adapter.backward(*module, module->training_step(batch));
    plain->training_step(batch).backward();
  }
  const auto ours = plain->model().named_parameters();
  for (const auto& item : module->model().named_parameters()) {
    const torch::Tensor expected = ours[item.key()].grad();
    const torch::Tensor found = item.value().grad();
    if (!found.defined()) broken("backward gives no gradient to " + item.key());
    const double error = (found.to(torch::kFloat) - expected).abs().max().item<double>();
    const double size = expected.abs().max().item<double>();
    if (!(error <= 1e-4 * size + 1e-7)) {
      broken(fmt::format("the gradient of {} is off by {:g} of {:g}, over two passes", item.key(), error, size));
    }
  }
}

void check_every_parameter(Adapter& adapter) {
  for (const std::string& rule : Optimizer::names()) {
    const auto module = contract_module();
    Engine engine(*module, contract_options(rule, 1), services_for(adapter));
    const NamedTensors before = copies_of(module->model());
    const auto train = contract_loader();
    engine.fit(*train, nullptr);
    for (const auto& [name, old] : before) {
      const torch::Tensor now = module->model().named_parameters()[name];
      if (now.detach().equal(old)) broken(fmt::format("{} does not update {}", rule, name));
      if (now.grad().defined() && now.grad().abs().max().item<double>() > 0) {
        broken("clear_grad keeps the gradient of " + name);
      }
    }
  }
}

void train_and_judge(Adapter& adapter, const EngineOptions& options, const std::string& what) {
  const auto module = contract_module();
  Engine engine(*module, options, services_for(adapter));
  const auto train = contract_loader();
  engine.fit(*train, nullptr);
  for (const double loss : module->losses) {
    if (!std::isfinite(loss)) broken(fmt::format("{}: a loss is {}", what, loss));
  }
  if (!(module->losses.back() < module->losses.front())) {
    broken(fmt::format("{}: the loss went from {:.4f} to {:.4f}", what, module->losses.front(), module->losses.back()));
  }
}

void check_losses(Adapter& adapter) {
  for (const std::string& rule : Optimizer::names()) train_and_judge(adapter, contract_options(rule), rule);
}

// A finite loss whose gradients are not, with nothing clipped or scaled: only the optimizer can see it.
void check_non_finite(Adapter& adapter) {
  for (const std::string& rule : Optimizer::names()) {
    const auto module = contract_module();
    module->gradient_factor = std::numeric_limits<double>::quiet_NaN();
    Engine engine(*module, contract_options(rule, 1), services_for(adapter));
    const NamedTensors before = copies_of(module->model());
    const auto train = contract_loader();
    try {
      engine.fit(*train, nullptr);
      broken(rule + " updates with gradients that are not finite");
    } catch (const NonFiniteError&) {
    }
    for (const auto& [name, old] : before) {
      if (!module->model().named_parameters()[name].detach().equal(old)) {
        broken(fmt::format("{} changes {} before it finds that gradients are not finite", rule, name));
      }
    }
  }
}

void check_lower_precision(Adapter& adapter) {
  for (const bool low_weights : {false, true}) {
    EngineOptions options = contract_options("AdamW");
    options.precision.mixed = torch::kBFloat16;
    options.precision.low_weights = low_weights;
    train_and_judge(adapter, options, low_weights ? "O2" : "O1");
  }
}

void check_scaler(Adapter& adapter) {
  const auto module = contract_module();
  EngineOptions options = contract_options("SGD", 1);
  options.precision.mixed = torch::kHalf;
  options.precision.scaling = LossScaler::Options{};
  module->loss_factor = 1e9;
  Engine engine(*module, options, services_for(adapter));
  const double before = engine.optimizer().loss_scale();
  const NamedTensors weights = copies_of(module->model());
  const auto train = contract_loader();
  engine.fit(*train, nullptr);
  const double after = engine.optimizer().loss_scale();
  if (!(after > 0 && after < before))
    broken(fmt::format("after an overflow the scale went from {} to {}", before, after));
  for (const auto& [name, old] : weights) {
    if (!module->model().named_parameters()[name].detach().equal(old)) broken("an overflow changed " + name);
  }
}

void make_steps(Engine& engine, ContractModule& module, int64_t from, int64_t to) {
  const auto loader = contract_loader();
  const int64_t per_epoch = loader->num_batches();
  for (int64_t i = from; i < to; ++i) {
    if (i == from || i % per_epoch == 0) loader->start(i / per_epoch, i % per_epoch * loader->batch_size());
    module.training_step(*loader->next()).backward();
    engine.optimizer().step({.learning_rate = 0.02});
    engine.optimizer().clear_grad();
  }
}

void check_resume(Adapter& adapter) {
  for (const std::string& rule : Optimizer::names()) {
    // A stand-in for a checkpoint: weights and state copied into fresh objects.
    const auto half = contract_module();
    const auto rest = contract_module();
    Engine before(*half, contract_options(rule), services_for(adapter));
    Engine after(*rest, contract_options(rule), services_for(adapter));
    const auto reference = contract_module();
    Engine straight(*reference, contract_options(rule), services_for(adapter));
    make_steps(straight, *reference, 0, kContractSteps);
    make_steps(before, *half, 0, kContractSteps / 2);
    std::map<std::string, torch::Tensor> state;
    for (const auto& [name, tensor] : before.optimizer().state()) {
      if (!state.emplace(name, tensor.clone()).second) broken("two tensors of the state are called " + name);
    }
    for (const auto& [name, weight] : copies_of(half->model())) {
      rest->model().named_parameters()[name].detach().copy_(weight);
    }
    after.optimizer().load_state(state);
    make_steps(after, *rest, kContractSteps / 2, kContractSteps);
    const NamedTensors expected = copies_of(reference->model());
    const NamedTensors found = copies_of(rest->model());
    for (size_t i = 0; i < expected.size(); ++i) {
      if (!found[i].second.equal(expected[i].second)) {
        broken(fmt::format("{}: {} differs after saving and loading the state", rule, expected[i].first));
      }
    }
  }
}

}  // namespace

std::vector<ContractCheck> check_adapter(Adapter& adapter) {
  struct Named {
    const char* name;
    void (*run)(Adapter&);
  };
  constexpr Named kChecks[] = {{"devices", check_devices},
                               {"hooks_in_order", check_order},
                               {"parameters_kept", check_parameters},
                               {"gradients", check_gradients},
                               {"every_parameter", check_every_parameter},
                               {"losses_finite", check_losses},
                               {"non_finite_gradients", check_non_finite},
                               {"lower_precision", check_lower_precision},
                               {"loss_scaler", check_scaler},
                               {"exact_resume", check_resume}};
  std::vector<ContractCheck> results;
  for (const Named& check : kChecks) {
    ContractCheck result{.name = check.name, .passed = true, .detail = {}};
    try {
      check.run(adapter);
    } catch (const std::exception& error) {
      result.passed = false;
      const std::string text = error.what();
      result.detail = text.substr(0, text.find("\nException raised from"));
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace assay
