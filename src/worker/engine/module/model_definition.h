// What a model is: its network, its loss, its inputs and its size. Knows nothing of steps, loops and files.
#pragma once

#include <torch/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/module/network.h"
#include "engine/optimizer/optimizer.h"

namespace assay {

// prediction, label -> mean loss over the batch.
using LossFunction = std::function<torch::Tensor(const torch::Tensor&, const torch::Tensor&)>;
using TensorsByName = std::map<std::string, torch::Tensor>;

// One input of an exported model. Extent -1 is free: the first is the batch, others are for example a sequence. Free
// extents at the same place are equal in all inputs.
struct InputSpec {
  std::string name;
  torch::ScalarType dtype = torch::kFloat;
  std::vector<int64_t> shape;
  int64_t num_values = 1;  // of integers: 0 .. num_values - 1 may occur, such as the ids of a vocabulary
};

// Floating-point operations of training for each multiply-add of the forward pass: a multiplication and an addition,
// three times, since the backward pass computes two products for each one of the forward pass.
inline constexpr double kTrainFlops = 6;

class ModelDefinition {
 public:
  virtual ~ModelDefinition() = default;

  // --- what a model must say
  virtual std::shared_ptr<Network> get_model() = 0;  // called once, by init()
  virtual LossFunction get_loss_fn() = 0;            // called once, by init()
  virtual std::vector<InputSpec> input_spec() const = 0;

  // --- what it may say
  virtual std::string sample_unit() const { return "samples"; }  // "images", "tokens"
  virtual double units_per_sample() const { return 1; }          // tokens of a sequence
  // Floating-point operations of training on one sample: kTrainFlops * multiply-adds. nullopt: unknown, and no MFU.
  virtual std::optional<double> flops_per_sample() const { return std::nullopt; }
  // The tensors of a published file of weights, which may have other names than the network and more tensors: as the
  // network names them. Our own files come through unchanged.
  virtual TensorsByName from_published(TensorsByName tensors) const { return tensors; }

  // Builds network and loss; call once, after the random generator was seeded.
  void init();
  Network& model() const;
  const std::shared_ptr<Network>& network() const { return model_; }
  const LossFunction& loss_fn() const { return loss_fn_; }
  // Trains another network from now on: a vendor's convert_model.
  void replace_network(std::shared_ptr<Network> network) { model_ = std::move(network); }
  // What the optimizer updates: the network's trainable parameters, or what a strategy has set instead.
  ParameterSet trained_parameters() const;
  void set_trained_parameters(ParameterSet parameters) { trained_parameters_ = std::move(parameters); }

 private:
  std::shared_ptr<Network> model_;
  LossFunction loss_fn_;
  std::optional<ParameterSet> trained_parameters_;
};

}  // namespace assay
