#include "engine/module/measured_model.h"

#include "base/error.h"

namespace assay {

TensorList inputs_of(const Batch& batch) {
  ASSAY_CHECK(batch.tensors.size() >= 2, "a batch needs inputs and a label");
  return {batch.tensors.begin(), batch.tensors.end() - 1};
}

const torch::Tensor& label_of(const Batch& batch) { return batch.tensors.back(); }

torch::Tensor MeasuredModel::training_loss(const TensorList& stream, const Batch& batch) {
  return loss_fn()(model().output(stream), label_of(batch));
}

EvalStep MeasuredModel::measure_stream(const TensorList& stream, const Batch& batch) {
  return measure_output(model().output(stream), batch);
}

EvalStep MeasuredModel::measure_output(const torch::Tensor& output, const Batch& batch) {
  EvalStep step;
  step.output = output;
  step.loss = loss_fn()(output, label_of(batch));
  step.num_samples = batch.num_samples;
  return step;
}

MetricValues MeasuredModel::validation_epoch_end(int64_t /*epoch*/, const EvalSums& sums) {
  return {{"loss", sums.loss / static_cast<double>(sums.num_samples)}};
}

}  // namespace assay
