// The residual networks of He et al. 2015 for images of ImageNet's kind, with the parameter names of the published
// PyTorch weights: conv1, bn1, layer1.0.conv1, layer1.0.downsample.0, fc. A stride of a bottleneck block is in its 3x3
// convolution, as in those weights.
//
// Shapes: B batch, K num_classes. Input [B, 3, image_size, image_size].
#pragma once

#include "config/reader.h"
#include "models/common/classifier.h"

namespace assay::resnet {

struct StandardOptions {
  int64_t depth = 50;  // 18, 34, 50, 101, 152
  int64_t num_classes = 1000;
  int64_t image_size = 224;
  bool use_recompute = false;  // blocks are computed again in the backward pass
};

// Reads and checks the section Model.
StandardOptions read_standard_options(Reader& section);

class StandardResNet final : public Classifier {
 public:
  // Throws ConfigError for a depth that was never published.
  explicit StandardResNet(const StandardOptions& options);
  std::shared_ptr<Network> get_model() override;
  std::vector<InputSpec> input_spec() const override;
  std::optional<double> flops_per_sample() const override;  // 6 * the multiply-adds of convolutions and head
  Batch pretreating_batch(Batch batch) override;            // channels last in memory
  // Normalisations of torchvision's files do not count their batches.
  TensorsByName from_published(TensorsByName tensors) const override;

 private:
  StandardOptions options_;
};

}  // namespace assay::resnet
