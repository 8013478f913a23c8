// Finds texts in images: see network.h for what it computes, loss.h for how it learns, boxes.h for what is measured.
//
// Shapes: B batch, H and W image_size, M texts an image has room for.
#pragma once

#include "models/ocr_det/boxes.h"
#include "models/ocr_det/network.h"
#include "models/registry.h"

namespace assay::ocr_det {

class TextDetection final : public Module {
 public:
  TextDetection(const Options& options, const BoxOptions& boxes) : options_(options), boxes_(boxes) {}
  std::shared_ptr<Network> get_model() override;
  LossFunction get_loss_fn() override;  // maps, targets [B, 4, H, W]: see detection_loss
  std::vector<InputSpec> input_spec() const override;
  std::string sample_unit() const override { return "images"; }
  std::optional<double> flops_per_sample() const override;
  // Channels last in memory, which is fastest for all of its convolutions.
  Batch pretreating_batch(Batch batch) override;
  // A batch is that of TextImages (data/text_images.h).
  torch::Tensor training_step(const Batch& batch) override;
  // "loss", which in evaluation is that of the shrink map alone, and "precision", "recall" and "hmean" of boxes.
  EvalStep measure_output(const torch::Tensor& output, const Batch& batch) override;
  MetricValues validation_epoch_end(int64_t epoch, const EvalSums& sums) override;

 private:
  Options options_;
  BoxOptions boxes_;
};

ModelEntry entry();

}  // namespace assay::ocr_det
