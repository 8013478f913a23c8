// The five-layer network with which FleetX's guide shows how a model is added: linear layers, nothing between them.
// That makes it a linear classifier; with an activation it can learn more.
//
// Shapes: B batch, D image_size, K num_classes. Input [B, ...] is flattened to [B, D].
#pragma once

#include "models/common/classifier.h"
#include "models/registry.h"

namespace assay::simplenet {

struct Options {
  int64_t image_size = 784;  // numbers an image has, and the width of fc1 to fc4
  int64_t num_classes = 10;
  bool relu = false;  // between the layers
};

class SimpleNet final : public Classifier {
 public:
  explicit SimpleNet(const Options& options) : options_(options) {}
  std::shared_ptr<Network> get_model() override;
  std::vector<InputSpec> input_spec() const override;
  std::optional<double> flops_per_sample() const override;  // 6 * (4 * D * D + D * K)

 private:
  Options options_;
};

ModelEntry entry();

}  // namespace assay::simplenet
