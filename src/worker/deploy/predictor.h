// Runs an exported model: it needs the file and nothing else, no model code and no weights beside it.
#pragma once

#include <torch/script.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "data/loader.h"
#include "deploy/export.h"

namespace assay {

class Predictor {
 public:
  // Throws DataError naming the file when it is missing, damaged, or was not written by export.
  explicit Predictor(const std::filesystem::path& path);
  const ExportInfo& info() const { return info_; }
  // The tensors of a batch that the model takes, the first ones. Throws DataError when there are not enough.
  TensorList inputs_from(const Batch& batch) const;
  // Throws DataError when an input does not have the declared shape or type.
  torch::Tensor run(const TensorList& inputs);

 private:
  std::filesystem::path path_;
  ExportInfo info_;
  torch::jit::Module module_;
};

struct InferenceResult {
  torch::Tensor outputs;  // [N, ...]
  torch::Tensor labels;   // [N, ...]
  int64_t num_samples = 0;
  int64_t batch_size = 0;
  MetricValues metrics;
  double whole_s = 0;               // data, inference and everything between
  double compute_s = 0;             // inference alone
  std::vector<double> latencies_s;  // of each full batch, in order
};
// Every batch of the data once, after a warm-up that is not measured. The judge turns outputs into metrics and does not
// compute any: its weights do not matter.
InferenceResult run_inference(Predictor& predictor, Module& judge, Loader& data, std::optional<int64_t> max_batches);

// The value below which a share of the sorted values lies, by linear interpolation. `values` must not be empty.
double percentile(std::vector<double> values, double share);

}  // namespace assay
