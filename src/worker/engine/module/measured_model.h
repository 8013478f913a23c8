// How good an output of a model is: its loss, and the sums that metrics are made of. Called by whoever has an output:
// the steps of a module, the last stage of a pipeline, an export.
#pragma once

#include <optional>

#include "data/dataset.h"
#include "engine/module/evaluation.h"
#include "engine/module/model_definition.h"

namespace assay {

class MeasuredModel : public ModelDefinition {
 public:
  // The mean loss from the stream behind the last segment of the network.
  virtual torch::Tensor training_loss(const TensorList& stream, const Batch& batch);
  // What the mean loss of a batch is a mean over: how several batches, or several processes, make one mean. nullopt:
  // its samples.
  virtual std::optional<double> loss_weight(const Batch& /*batch*/) const { return std::nullopt; }
  // What a validation step measures, from the stream behind the last segment.
  virtual EvalStep measure_stream(const TensorList& stream, const Batch& batch);
  // Loss and sums that an output gives on its batch, whoever computed it: the network, or its export.
  virtual EvalStep measure_output(const torch::Tensor& output, const Batch& batch);
  // Turns sums into metrics. Always has "loss"; a classifier adds "accuracy".
  virtual MetricValues validation_epoch_end(int64_t epoch, const EvalSums& sums);
};

// The parts of a batch: the last tensor is the label, the others are inputs.
TensorList inputs_of(const Batch& batch);
const torch::Tensor& label_of(const Batch& batch);

}  // namespace assay
