// What all image classifiers share: cross entropy, accuracy, images as the unit. A model derives from it and says only
// what its network is.
#pragma once

#include "engine/module.h"

namespace assay {

class Classifier : public Module {
 public:
  LossFunction get_loss_fn() override;
  std::string sample_unit() const override { return "images"; }
  // Adds the sum "correct" and, at the end, the metric "accuracy".
  EvalStep measure_output(const torch::Tensor& output, const Batch& batch) override;
  MetricValues validation_epoch_end(int64_t epoch, const EvalSums& sums) override;
};

}  // namespace assay
