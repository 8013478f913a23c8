// What a vendor may replace in a training run: the functions of FlagPerf's trainer_adapter, each with what happens
// without it. The engine calls them in this order, once, and tells its observers after each:
//   convert_model (CONVERT_MODEL), create_optimizer (CREATE_OPTIMIZER), model_to_fp16 (MODEL_TO_FP16, level O2 only),
//   model_to_ddp (MODEL_TO_DDP), create_grad_scaler (with loss scaling only);
// then backward for every micro-batch. docs/extend/add-a-vendor.md shows how to write one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/registry.h"
#include "engine/module.h"
#include "engine/precision/loss_scaler.h"
#include "engine/precision/precision.h"

namespace assay {

// Derive and override what differs. Must outlive the engine that uses it.
class Adapter {
 public:
  virtual ~Adapter() = default;
  virtual std::string name() const { return "default"; }

  // Devices that Global.device may name besides cpu.
  virtual std::vector<DeviceSpec> devices() const { return {}; }
  // The network that is trained instead: the same one changed, or another. Its parameters must keep their names and
  // shapes, since checkpoints and exports go by them.
  virtual std::shared_ptr<Network> convert_model(std::shared_ptr<Network> network) { return network; }
  // Must update all of Module::trained_parameters() that have a gradient. Default: what the module configures, which is
  // the fused one.
  virtual std::unique_ptr<Optimizer> create_optimizer(Module& module, const Optimizer::Options& options);
  // Which parameters compute in the lower precision. Default: those of two dimensions and more; biases and
  // normalisation stay in float32, and so do tables with sparse gradients, of which a step reads some rows. Not called
  // with sharding stage 3, which gathers weights by the default's rule.
  virtual std::unique_ptr<LowPrecisionWeights> model_to_fp16(Network& network, torch::ScalarType dtype);
  // A vendor's own preparation for several processes. Default: nothing, the strategy has done it.
  virtual void model_to_ddp(Network& /*network*/) {}
  // Adds the gradients of the loss, scaled already, to those that the parameters hold.
  virtual void backward(Module& module, const torch::Tensor& loss) { module.backward(loss); }
  virtual std::unique_ptr<LossScaler> create_grad_scaler(const LossScaler::Options& options);
};

// Parameters that are trained, by name.
NamedTensors trainable_parameters(const Network& network);

}  // namespace assay
