// BERT's pre-training, masked tokens and next sentence, and BERT as a classifier of texts.
//
// Shapes: B batch, T sequence, V vocabulary.
#pragma once

#include "models/bert/network.h"
#include "models/common/classifier.h"
#include "models/registry.h"

namespace assay::bert {

class Bert final : public Module {
 public:
  explicit Bert(const Options& options) : options_(options) {}
  std::shared_ptr<Network> get_model() override;
  LossFunction get_loss_fn() override;  // of the language head alone: logits [B, T, V], masked [B, T]
  std::vector<InputSpec> input_spec() const override;
  std::string sample_unit() const override { return "tokens"; }
  double units_per_sample() const override { return static_cast<double>(options_.sequence_length); }
  // A batch is tokens, types, mask and masked, [B, T] each, and next [B]; see Encoder::loss.
  torch::Tensor training_loss(const TensorList& stream, const Batch& batch) override;
  TensorsByName from_published(TensorsByName tensors) const override;
  EvalStep measure_stream(const TensorList& stream, const Batch& batch) override;
  // Of the language head alone, which is all that an export has.
  EvalStep measure_output(const torch::Tensor& output, const Batch& batch) override;
  // "loss" is the sum of "language_loss", a masked token, and "next_loss", a sample; each has its accuracy:
  // "language_accuracy" and "next_accuracy". Without the second head it is the first part alone.
  MetricValues validation_epoch_end(int64_t epoch, const EvalSums& sums) override;
  // Floating-point operations of forward and backward pass for one sequence: 6 a weight and token, in the language head
  // a weight and masked token (15 %, BERT's share), and 12 T^2 D a layer for attention.
  std::optional<double> flops_per_sample() const override;

 private:
  Options options_;
};

// Options::num_classes is set. A batch is tokens, types and mask, [B, T] each, and labels [B].
class BertClassifier final : public Classifier {
 public:
  explicit BertClassifier(const Options& options) : options_(options) {}
  std::shared_ptr<Network> get_model() override;
  std::vector<InputSpec> input_spec() const override;
  std::string sample_unit() const override { return "tokens"; }
  double units_per_sample() const override { return static_cast<double>(options_.sequence_length); }
  // Of an encoder without classes: those that the network has drawn.
  TensorsByName from_published(TensorsByName tensors) const override;
  std::optional<double> flops_per_sample() const override;  // as Bert's, with the pooler and its classes for a head

 private:
  Options options_;
};

// Reads and checks the section Model, except its name.
Options read_options(Reader& section);

ModelEntry entry();

}  // namespace assay::bert
