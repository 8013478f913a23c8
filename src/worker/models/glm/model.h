// GLM as the blank_infilling data set trains it: the loss of the tokens of spans and of each span's end.
#pragma once

#include "models/common/language_model.h"
#include "models/glm/network.h"
#include "models/registry.h"

namespace assay::glm {

class Glm final : public LanguageModel {
 public:
  explicit Glm(const Options& options) : options_(options) {}
  std::shared_ptr<Network> get_model() override;
  std::vector<InputSpec> input_spec() const override;
  double units_per_sample() const override { return static_cast<double>(options_.sequence_length); }
  EvalStep measure_output(const torch::Tensor& output, const Batch& batch) override;
  // Adds "span_loss", of the tokens of spans without their ends: what a model that only reads from left to right can be
  // compared with; and "first_loss", of the first tokens of spans alone, to which nothing but attention leads.
  MetricValues validation_epoch_end(int64_t epoch, const EvalSums& sums) override;
  std::optional<double> flops_per_sample() const override;

 private:
  Options options_;
};

Options read_options(Reader& section);

ModelEntry entry();

}  // namespace assay::glm
