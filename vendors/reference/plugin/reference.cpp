// The reference plugin: an adapter that replaces something of everything by the plainest code that is right. It is
// slow. Copy it to begin a plugin of your own (docs/add-a-vendor.md).
#include <cmath>

#include "engine/plugin.h"

namespace {

using assay::NamedTensors;
using assay::Optimizer;
using torch::Tensor;

// The formulas of engine/fused_optimizer.h, one tensor operation after the other.
class PlainOptimizer final : public Optimizer {
 public:
  PlainOptimizer(NamedTensors parameters, const Options& options)
      : parameters_(std::move(parameters)),
        options_(options),
        decays_one_dimension_(options.name != "AdamW" && options.name != "LAMB") {
    for (const auto& [name, weight] : parameters_) {
      first_.push_back(torch::zeros_like(weight));
      second_.push_back(torch::zeros_like(weight));
    }
  }

  Outcome step(const Update& update) override {
    const torch::NoGradGuard no_grad;
    std::vector<Tensor> gradients;
    double squares = 0;
    for (const auto& [name, weight] : parameters_) {
      const Tensor gradient = weight.grad();
      gradients.push_back(gradient.defined() ? gradient.to(weight.scalar_type()) / update.gradient_scale : gradient);
      if (gradient.defined()) squares += gradients.back().to(torch::kDouble).square().sum().item<double>();
    }
    Outcome outcome{.gradient_norm = std::sqrt(squares)};
    if (!std::isfinite(squares) && (options_.clip_norm || update.skip_non_finite)) {
      if (!update.skip_non_finite) throw std::runtime_error("the norm of the gradients is not finite");
      outcome.skipped = true;
      return outcome;
    }
    ++num_updates_;
    const double clip = options_.clip_norm ? std::min(1.0, *options_.clip_norm / (*outcome.gradient_norm + 1e-6)) : 1.0;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (gradients[i].defined()) update_one(i, gradients[i] * clip, update.learning_rate);
    }
    return outcome;
  }

  void clear_grad() override {
    for (auto& [name, weight] : parameters_) Tensor(weight).mutable_grad() = Tensor();
  }
  int64_t num_updates() const override { return num_updates_; }

  NamedTensors state() const override {
    NamedTensors state = {{"num_updates", torch::tensor(num_updates_, torch::kLong)}};
    for (size_t i = 0; i < parameters_.size(); ++i) {
      state.emplace_back("first." + parameters_[i].first, first_[i]);
      state.emplace_back("second." + parameters_[i].first, second_[i]);
    }
    return state;
  }
  void load_state(const std::map<std::string, Tensor>& saved) override {
    const std::vector<Tensor> found = assay::find_state(state(), saved);
    num_updates_ = found[0].item<int64_t>();
    for (size_t i = 0; i < parameters_.size(); ++i) {
      first_[i].copy_(found[1 + 2 * i]);
      second_[i].copy_(found[2 + 2 * i]);
    }
  }

 private:
  bool decays(size_t i) const {
    if (!options_.no_decay) return decays_one_dimension_ || parameters_[i].second.dim() > 1;
    for (const std::string& part : *options_.no_decay) {
      if (parameters_[i].first.find(part) != std::string::npos) return false;
    }
    return true;
  }

  void update_one(size_t i, Tensor g, double rate) {
    Tensor w = parameters_[i].second.detach();
    Tensor& m = first_[i];
    Tensor& s = second_[i];
    const Options& o = options_;
    const double decay = decays(i) ? o.weight_decay : 0.0;
    if (o.name == "AdamW") {
      w.mul_(1 - rate * decay);
    } else if (o.name != "LAMB") {
      g = g + decay * w;
    }
    if (o.name == "SGD") {
      w.sub_(rate * g);
    } else if (o.name == "Momentum") {
      m.mul_(o.momentum).add_(g);
      w.sub_(rate * (o.nesterov ? g + o.momentum * m : m));
    } else if (o.name == "Adagrad") {
      s.add_(g * g);
      w.sub_(rate * g / (s.sqrt() + o.epsilon));
    } else {
      const auto t = static_cast<double>(num_updates_);
      m.mul_(o.beta1).add_(g, 1 - o.beta1);
      s.mul_(o.beta2).add_(g * g, 1 - o.beta2);
      Tensor change = m / (1 - std::pow(o.beta1, t)) / ((s / (1 - std::pow(o.beta2, t))).sqrt() + o.epsilon);
      double ratio = 1;
      if (o.name == "LAMB") {
        change = change + decay * w;
        const double size = w.norm().item<double>();
        const double length = change.norm().item<double>();
        if (size > 0 && length > 0) ratio = size / length;
      }
      w.sub_(rate * ratio * change);
    }
  }

  NamedTensors parameters_;
  Options options_;
  bool decays_one_dimension_;
  std::vector<Tensor> first_;
  std::vector<Tensor> second_;
  int64_t num_updates_ = 0;
};

class ReferenceAdapter final : public assay::Adapter {
 public:
  std::string name() const override { return "reference"; }
  // The processor under another name. Its peaks are unknown, so there is no MFU.
  std::vector<assay::DeviceSpec> devices() const override { return {{.name = "reference", .type = "cpu"}}; }
  std::unique_ptr<Optimizer> create_optimizer(assay::Module& module, const Optimizer::Options& options) override {
    return std::make_unique<PlainOptimizer>(assay::trainable_parameters(module.model()), options);
  }
  void backward(assay::Module&, const Tensor& loss) override { loss.backward(); }
};

}  // namespace

ASSAY_PLUGIN("reference", ReferenceAdapter)
