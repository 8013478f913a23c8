// The reference plugin: an adapter that replaces something of everything by the plainest code that is right. It is
// slow. Copy it to begin a plugin of your own (docs/extend/add-a-vendor.md).
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/adapter/plugin.h"

namespace {

using assay::NamedTensors;
using assay::Optimizer;
using torch::Tensor;

// The formulas of engine/optimizer/fused_optimizer.h, one tensor operation after the other. With several processes a
// parameter may be a part of one, so that norms are summed over all of them (ParameterSet::sum_of_all).
class PlainOptimizer final : public Optimizer {
 public:
  PlainOptimizer(assay::ParameterSet set, const Options& options) : set_(std::move(set)), options_(options) {
    if (set_.all_names.empty()) {
      for (const assay::TrainedParameter& parameter : set_.parameters) set_.all_names.push_back(parameter.name);
    }
    for (const assay::TrainedParameter& parameter : set_.parameters) {
      first_.push_back(torch::zeros_like(parameter.tensor));
      second_.push_back(torch::zeros_like(parameter.tensor));
    }
  }

  Outcome step(const Update& update) override {
    const torch::NoGradGuard no_grad;
    std::vector<Tensor> gradients = true_gradients(update.gradient_scale);
    std::vector<double> squares = {0};
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined() && set_.parameters[i].counts) squares[0] += squares_of(gradients[i]);
    }
    set_.sum_of_all(squares);
    Outcome outcome{.gradient_norm = std::sqrt(squares[0])};
    if (!std::isfinite(squares[0])) {
      if (!update.skip_non_finite) throw assay::NonFiniteError("the norm of the gradients is not finite");
      outcome.skipped = true;
      return outcome;
    }
    ++num_updates_;
    const double clip = options_.clip_norm ? std::min(1.0, *options_.clip_norm / (*outcome.gradient_norm + 1e-6)) : 1.0;
    for (Tensor& gradient : gradients) {
      if (gradient.defined()) gradient = gradient * clip;
    }
    if (options_.name == "LAMB") {
      update_by_lamb(gradients, update.learning_rate);
    } else {
      for (size_t i = 0; i < gradients.size(); ++i) {
        if (gradients[i].defined()) update_one(i, gradients[i], update.learning_rate);
      }
    }
    return outcome;
  }

  void clear_grad() override {
    for (const assay::TrainedParameter& parameter : set_.parameters) Tensor(parameter.tensor).mutable_grad() = Tensor();
  }
  int64_t num_updates() const override { return num_updates_; }

  NamedTensors state() const override {
    NamedTensors state = {{"num_updates", torch::tensor(num_updates_, torch::kLong)}};
    for (size_t i = 0; i < set_.parameters.size(); ++i) {
      // "<kind>.<parameter>": with several processes these are found to be parts of the parameter by the name.
      state.emplace_back("first." + set_.parameters[i].name, first_[i]);
      state.emplace_back("second." + set_.parameters[i].name, second_[i]);
    }
    return state;
  }
  void load_state(const std::map<std::string, Tensor>& saved) override {
    const std::vector<Tensor> found = assay::find_state(state(), saved);
    num_updates_ = found[0].item<int64_t>();
    for (size_t i = 0; i < set_.parameters.size(); ++i) {
      first_[i].copy_(found[1 + 2 * i]);
      second_[i].copy_(found[2 + 2 * i]);
    }
  }

 private:
  static double squares_of(const Tensor& x) { return x.to(torch::kDouble).square().sum().item<double>(); }

  // Without the loss scale, in the type of the weights. Rows of a table become a whole one.
  std::vector<Tensor> true_gradients(double scale) const {
    std::vector<Tensor> gradients;
    for (const assay::TrainedParameter& parameter : set_.parameters) {
      Tensor gradient = parameter.tensor.grad();
      if (gradient.defined() && gradient.is_sparse()) gradient = gradient.to_dense();
      gradients.push_back(gradient.defined() ? gradient.to(parameter.tensor.scalar_type()) / scale : gradient);
    }
    return gradients;
  }

  double decay_of(size_t i) const {
    const assay::TrainedParameter& parameter = set_.parameters[i];
    const bool leaves_out = options_.name == "AdamW" || options_.name == "LAMB";
    if (!options_.no_decay) return leaves_out && parameter.num_dims < 2 ? 0.0 : options_.weight_decay;
    for (const std::string& part : *options_.no_decay) {
      if (parameter.name.find(part) != std::string::npos) return 0;
    }
    return options_.weight_decay;
  }

  // Brings the moments up to date; m / (sqrt(s) + epsilon), both corrected for their beginning at 0.
  Tensor adam_change(size_t i, const Tensor& g) {
    const auto t = static_cast<double>(num_updates_);
    const Options& o = options_;
    first_[i].mul_(o.beta1).add_(g, 1 - o.beta1);
    second_[i].mul_(o.beta2).add_(g * g, 1 - o.beta2);
    return first_[i] / (1 - std::pow(o.beta1, t)) / ((second_[i] / (1 - std::pow(o.beta2, t))).sqrt() + o.epsilon);
  }

  void update_one(size_t i, Tensor g, double rate) {
    Tensor w = set_.parameters[i].tensor.detach();
    Tensor& m = first_[i];
    Tensor& s = second_[i];
    const Options& o = options_;
    if (o.name == "AdamW") {
      w.mul_(1 - rate * decay_of(i));
    } else {
      g = g + decay_of(i) * w;
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
      w.sub_(rate * adam_change(i, g));
    }
  }

  // Norms are over whole parameters: all changes first, then the norms of all processes' parts, then the weights.
  void update_by_lamb(const std::vector<Tensor>& gradients, double rate) {
    std::vector<Tensor> changes(gradients.size());
    std::vector<double> squares(2 * set_.all_names.size());  // of weight and change, one parameter after the other
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const Tensor w = set_.parameters[i].tensor.detach();
      changes[i] = adam_change(i, gradients[i]) + decay_of(i) * w;
      if (!set_.parameters[i].counts) continue;
      squares[place_of(i)] += squares_of(w);
      squares[place_of(i) + 1] += squares_of(changes[i]);
    }
    set_.sum_of_all(squares);
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!changes[i].defined()) continue;
      const double weight = squares[place_of(i)], change = squares[place_of(i) + 1];
      const double ratio = weight > 0 && change > 0 ? std::sqrt(weight / change) : 1;
      set_.parameters[i].tensor.detach().sub_(rate * ratio * changes[i]);
    }
  }
  size_t place_of(size_t i) const {
    const auto found = std::find(set_.all_names.begin(), set_.all_names.end(), set_.parameters[i].name);
    return 2 * static_cast<size_t>(found - set_.all_names.begin());
  }

  assay::ParameterSet set_;
  Options options_;
  std::vector<Tensor> first_;
  std::vector<Tensor> second_;
  int64_t num_updates_ = 0;
};

// A dynamic scale that is halved by every overflow and doubled after a number of steps without; a static one stays.
class PlainScaler final : public assay::LossScaler {
 public:
  explicit PlainScaler(const Options& options) : LossScaler(options), options_(options), scale_(options.initial) {}
  double scale() const override { return scale_; }
  void update(bool found_inf) override {
    overflows_ = found_inf ? overflows_ + 1 : 0;
    good_steps_ = found_inf ? 0 : good_steps_ + 1;
    if (overflows_ > kMaxOverflows)
      throw assay::NonFiniteError("gradients overflow step after step, at any loss scale");
    if (!options_.dynamic) return;
    if (found_inf) scale_ = std::max(scale_ / 2, 1.0);
    if (good_steps_ == options_.growth_interval) {
      scale_ *= 2;
      good_steps_ = 0;
    }
  }
  NamedTensors state() const override {
    return {{"scaler.scale", torch::tensor(scale_, torch::kDouble)},
            {"scaler.good_steps", torch::tensor(good_steps_, torch::kLong)},
            {"scaler.overflows", torch::tensor(overflows_, torch::kLong)}};
  }
  void load_state(const std::map<std::string, Tensor>& saved) override {
    const std::vector<Tensor> found = assay::find_state(PlainScaler::state(), saved);
    scale_ = found[0].item<double>();
    good_steps_ = found[1].item<int64_t>();
    overflows_ = found[2].item<int64_t>();
  }

 private:
  static constexpr int64_t kMaxOverflows = 16;  // a scale of 65536 needs as many to arrive at 1
  Options options_;
  double scale_;
  int64_t good_steps_ = 0;  // since the last change or overflow
  int64_t overflows_ = 0;   // in a row
};

class ReferenceAdapter final : public assay::Adapter {
 public:
  std::string name() const override { return "reference"; }
  // The processor under another name. Its peaks are unknown, so there is no MFU.
  std::vector<assay::DeviceSpec> devices() const override { return {{.name = "reference", .type = "cpu"}}; }
  // Weights in memory of their own, as for a device that has its own.
  std::shared_ptr<assay::Network> convert_model(std::shared_ptr<assay::Network> network) override {
    for (Tensor& parameter : network->parameters()) parameter.set_data(parameter.detach().clone());
    return network;
  }
  std::unique_ptr<Optimizer> create_optimizer(assay::Module& module, const Optimizer::Options& options) override {
    return std::make_unique<PlainOptimizer>(module.trained_parameters(), options);
  }
  // Matrices, but not tables, of which a step reads some rows.
  std::unique_ptr<assay::LowPrecisionWeights> model_to_fp16(assay::Network& network, torch::ScalarType dtype) override {
    const std::vector<std::string> tables = network.sparse_parameters();
    std::vector<Tensor> matrices;
    for (const auto& [name, parameter] : assay::trainable_parameters(network)) {
      const bool is_table = std::find(tables.begin(), tables.end(), name) != tables.end();
      if (parameter.dim() > 1 && !is_table) matrices.push_back(parameter);
    }
    return std::make_unique<assay::LowPrecisionWeights>(std::move(matrices), dtype);
  }
  // Gradients are sent between processes from the processor's memory: there is nothing to do but to see that they are.
  void model_to_ddp(assay::Network& network) override {
    for (const Tensor& parameter : network.parameters()) {
      if (!parameter.device().is_cpu()) throw assay::ConfigError("the reference's weights are on the processor");
    }
  }
  void backward(assay::Module&, const Tensor& loss) override { loss.backward(); }
  std::unique_ptr<assay::LossScaler> create_grad_scaler(const assay::LossScaler::Options& options) override {
    return std::make_unique<PlainScaler>(options);
  }
};

}  // namespace

ASSAY_PLUGIN("reference", ReferenceAdapter)
