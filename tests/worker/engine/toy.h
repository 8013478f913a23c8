// A tiny module and its data, for tests of the engine.
#pragma once

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/loop/engine.h"

namespace assay {

// Sample i: 4 numbers, class i % 3. Learnable.
class ToyData final : public Dataset {
 public:
  explicit ToyData(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  std::string hash() const override { return "toy"; }
  Batch gather(std::span<const int64_t> indices, int64_t /*epoch*/) const override {
    const auto count = static_cast<int64_t>(indices.size());
    torch::Tensor x = torch::zeros({count, 4});
    torch::Tensor y = torch::zeros({count}, torch::kLong);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = indices[static_cast<size_t>(i)];
      y[i] = index % 3;
      for (int64_t k = 0; k < 4; ++k) {
        x[i][k] = (k == index % 3 ? 1.0f : 0.0f) + static_cast<float>((index * 31 + k * 17) % 10) * 0.05f;
      }
    }
    return {{x, y}, count};
  }

 private:
  int64_t size_;
};

// Dropout makes the random generator part of the state.
class ToyNetwork final : public Network {
 public:
  ToyNetwork() : linear_(register_module("linear", torch::nn::Linear(4, 3))), dropout_(0.2) {
    register_module("dropout", dropout_);
  }
  torch::Tensor forward(const TensorList& inputs) override { return linear_->forward(dropout_->forward(inputs.at(0))); }

 private:
  torch::nn::Linear linear_;
  torch::nn::Dropout dropout_;
};

// Writes every hook call into a list. The hook `on_step` may change the loss.
class ToyModule : public Module {
 public:
  std::vector<std::string> calls;
  std::vector<TrainLog> logs;
  std::function<torch::Tensor(torch::Tensor)> on_loss;

  std::shared_ptr<Network> get_model() override {
    calls.emplace_back("get_model");
    return std::make_shared<ToyNetwork>();
  }
  LossFunction get_loss_fn() override {
    calls.emplace_back("get_loss_fn");
    return [](const torch::Tensor& x, const torch::Tensor& y) { return torch::nn::functional::cross_entropy(x, y); };
  }
  std::vector<InputSpec> input_spec() const override { return {{.name = "x", .shape = {-1, 4}}}; }
  Batch pretreating_batch(Batch batch) override {
    calls.emplace_back("pretreating_batch");
    return batch;
  }
  torch::Tensor training_step(const Batch& batch) override {
    calls.emplace_back("training_step");
    torch::Tensor loss = Module::training_step(batch);
    return on_loss ? on_loss(loss) : loss;
  }
  void training_step_end(const TrainLog& log) override {
    calls.emplace_back("training_step_end");
    logs.push_back(log);
  }
  EvalStep validation_step(const Batch& batch) override {
    calls.emplace_back("validation_step");
    return measure(batch);
  }
  void validation_step_end(const EvalLog&) override { calls.emplace_back("validation_step_end"); }
  EvalStep test_step(const Batch& batch) override {
    calls.emplace_back("test_step");
    return measure(batch);
  }
  void test_step_end(const EvalLog&) override { calls.emplace_back("test_step_end"); }
  void backward(const torch::Tensor& loss) override {
    calls.emplace_back("backward");
    loss.backward();
  }
  void training_epoch_end(int64_t, double) override { calls.emplace_back("training_epoch_end"); }
  MetricValues validation_epoch_end(int64_t epoch, const EvalSums& sums) override {
    calls.emplace_back("validation_epoch_end");
    MetricValues metrics = Module::validation_epoch_end(epoch, sums);
    metrics["accuracy"] = sums.sums.at("correct") / static_cast<double>(sums.num_samples);
    return metrics;
  }
  std::unique_ptr<Optimizer> configure_optimizers(const Optimizer::Options& options) override {
    calls.emplace_back("configure_optimizers");
    return Module::configure_optimizers(options);
  }

 private:
  EvalStep measure(const Batch& batch) {
    EvalStep step = Module::validation_step(batch);
    step.sums["correct"] = step.output.argmax(1).eq(label_of(batch)).sum().item<double>();
    return step;
  }
};

inline EngineOptions toy_options() {
  EngineOptions options;
  options.num_epochs = 2;
  options.logging_freq = 1;
  options.optimizer.name = "Momentum";
  options.schedule.learning_rate = 0.1;
  options.schedule.decay_steps = 0;
  options.local_batch_size = 8;
  return options;
}

inline std::unique_ptr<Loader> toy_loader(int64_t num_samples = 40, bool shuffle = true) {
  return std::make_unique<Loader>(
      std::make_shared<ToyData>(num_samples),
      Sampler::Options{.num_samples = num_samples, .batch_size = 8, .shuffle = shuffle, .drop_last = false, .seed = 3},
      Loader::Options{.num_workers = 1, .prefetch = 2});
}

inline std::vector<std::string> checkpoint_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const std::filesystem::path& path : list_checkpoints(folder)) names.push_back(path.filename());
  return names;
}

// An initialised toy with the same first weights every time.
inline std::unique_ptr<ToyModule> toy_module() {
  torch::manual_seed(11);
  auto module = std::make_unique<ToyModule>();
  module->init();
  module->calls.clear();
  return module;
}

}  // namespace assay
