// A small residual network for 28x28 images: a strided stem, stages of two-convolution blocks that halve the image and
// double the channels, the mean over the image, one linear layer.
//
// Shapes: B batch, C in_channels, H and W image, K num_classes. Input [B, C, H, W].
#pragma once

#include "models/common/classifier.h"
#include "models/registry.h"

namespace assay::resnet {

struct Options {
  int64_t in_channels = 1;
  int64_t num_classes = 10;
  int64_t image_size = 28;               // height and width that the export declares; others work too
  int64_t width = 16;                    // channels of the first stage; multiples of 16 are fastest
  std::vector<int64_t> blocks{1, 1, 1};  // residual blocks of each stage
  int64_t stem_stride = 2;               // 2 quarters the work of everything behind the stem
  bool use_recompute = false;            // blocks are computed again in the backward pass
};

class ResNet final : public Classifier {
 public:
  explicit ResNet(const Options& options) : options_(options) {}
  std::shared_ptr<Network> get_model() override;
  std::vector<InputSpec> input_spec() const override;
  // 6 * the multiply-adds of all convolutions and of the head, for images of image_size.
  std::optional<double> flops_per_sample() const override;
  // Channels last in memory, where oneDNN is twice as fast on these sizes.
  Batch pretreating_batch(Batch batch) override;

 private:
  Options options_;
};

ModelEntry entry();

}  // namespace assay::resnet
