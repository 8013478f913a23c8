// What an evaluation measures: sums and values of batches, which add up over batches and processes.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "engine/module/network.h"

namespace assay {

// What a validation or test step measured on one batch. Sums, so that batches and ranks add up; a metric that no sums
// give, such as the area under a curve, gets one number per sample instead.
struct EvalStep {
  torch::Tensor loss;    // mean over the batch
  torch::Tensor output;  // what predict() collects
  int64_t num_samples = 0;
  std::map<std::string, double> sums = {};           // for example "correct"
  std::map<std::string, torch::Tensor> values = {};  // [num_samples] each
};

struct EvalSums {
  double loss = 0;  // sum over samples
  int64_t num_samples = 0;
  std::map<std::string, double> sums = {};
  std::map<std::string, torch::Tensor> values = {};  // of all batches, one after the other
};

// Adds up the steps of one evaluation.
class EvalCollector {
 public:
  void add(const EvalStep& step);
  EvalSums sums() const;

 private:
  EvalSums sums_;
  std::map<std::string, TensorList> values_;
};

using MetricValues = std::map<std::string, double>;

}  // namespace assay
