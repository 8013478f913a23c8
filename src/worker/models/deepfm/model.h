// DeepFM (Guo et al. 2017) for click-through: what someone does with something, from categories such as user and item.
// Every value of every category has a weight and an embedding; the embeddings are shared by a factorisation machine,
// which sees pairs of values, and a network, which sees all of them.
//
// Shapes: B batch, F fields, K size of an embedding.
#pragma once

#include <vector>

#include "engine/module.h"
#include "models/registry.h"

namespace assay::deepfm {

struct Options {
  std::vector<int64_t> fields = {671, 9066};            // values that each category has
  int64_t embedding_size = 10;                          // K
  std::vector<int64_t> hidden_sizes = {400, 400, 400};  // of the network; empty: a factorisation machine alone
  double dropout = 0.5;                                 // behind each hidden layer
  double initializer_range = 0.05;                      // standard deviation of new embeddings
  bool use_recompute = false;                           // hidden layers are computed again in the backward pass
};

class DeepFm final : public Module {
 public:
  explicit DeepFm(const Options& options) : options_(options) {}
  // field [B] int64, F times -> logits [B]. Gradients of the tables are sparse: rows of values that the batch has.
  std::shared_ptr<Network> get_model() override;
  LossFunction get_loss_fn() override;  // binary cross entropy of logits [B] and labels [B], which are 0 or 1
  std::vector<InputSpec> input_spec() const override;
  EvalStep measure_output(const torch::Tensor& output, const Batch& batch) override;
  // "auc" over all samples of the evaluation (auc.h), NaN when their labels are all the same; "accuracy" at probability
  // 0.5; "loss" is what others call logloss, and is there by that name too.
  MetricValues validation_epoch_end(int64_t epoch, const EvalSums& sums) override;
  // The products of the network, and 2 F K + K of the factorisation machine.
  std::optional<double> flops_per_sample() const override;

 private:
  Options options_;
};

ModelEntry entry();

}  // namespace assay::deepfm
