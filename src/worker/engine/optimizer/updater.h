// From gradients to new weights: an optimizer, with a loss scaler and an average of the weights where asked for. Its
// state is all that a checkpoint holds beside the weights.
#pragma once

#include <memory>

#include "engine/optimizer/optimizer.h"
#include "engine/optimizer/weight_average.h"
#include "engine/precision/loss_scaler.h"

namespace assay {

class Updater final : public Optimizer {
 public:
  struct Parts {
    std::unique_ptr<Optimizer> optimizer;
    std::unique_ptr<LossScaler> scaler;      // null: the loss is not scaled, and what is not finite is an error
    std::unique_ptr<WeightAverage> average;  // null: none
  };
  explicit Updater(Parts parts) : parts_(std::move(parts)) {}

  double loss_scale() const { return parts_.scaler ? parts_.scaler->scale() : 1.0; }
  bool may_skip() const { return parts_.scaler != nullptr; }

  // With a scaler, gradients are unscaled, and a step whose gradients are not finite is skipped. `update` needs only
  // the learning rate.
  Outcome step(const Update& update) override;
  // Counts a step whose loss was not finite, so that there is nothing to update with. Only with a scaler.
  void skip() { parts_.scaler->update(/*found_inf=*/true); }
  void clear_grad() override { parts_.optimizer->clear_grad(); }
  int64_t num_updates() const override { return parts_.optimizer->num_updates(); }
  NamedTensors state() const override;
  void load_state(const std::map<std::string, torch::Tensor>& state) override;

  // The parameters hold their average as long as the result lives; null when there is no average (yet).
  std::unique_ptr<WeightSwap> use_average() const;
  // The parameters become their average, if there is one.
  void adopt_average() const;

 private:
  Parts parts_;
};

}  // namespace assay
