#include "deploy/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/time.h"

namespace assay {

namespace {

constexpr int kWarmUpRuns = 3;  // TorchScript profiles the first run and optimises in the second

struct Opened {
  torch::jit::Module module;
  std::string description;
};

Opened open_file(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) throw DataError(fmt::format("{}: no such file", path.string()));
  torch::jit::ExtraFilesMap extra = {{kExportDescription, ""}};
  try {
    torch::jit::Module module = torch::jit::load(path.string(), torch::kCPU, extra);
    return {std::move(module), extra[kExportDescription]};
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw DataError(
        fmt::format("{}: not a usable TorchScript file: {}", path.string(), text.substr(0, text.find('\n'))));
  }
}

// A declared image of [C, H, W] may be given flat, as FleetX's example wants it.
torch::Tensor fitted(const torch::Tensor& input, const InputSpec& spec) {
  const auto fits = [&](at::IntArrayRef shape) {
    if (shape.size() != spec.shape.size()) return false;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (spec.shape[i] != -1 && spec.shape[i] != shape[i]) return false;
    }
    return true;
  };
  if (fits(input.sizes())) return input;
  if (spec.shape.size() == 2 && input.dim() > 2 && fits(input.flatten(1).sizes())) return input.flatten(1);
  throw DataError(fmt::format("input '{}' has shape [{}], the model wants [{}]", spec.name,
                              fmt::join(input.sizes(), ", "), fmt::join(spec.shape, ", ")));
}

}  // namespace

Predictor::Predictor(const std::filesystem::path& path) : path_(path) {
  Opened opened = open_file(path);
  if (opened.description.empty()) {
    throw DataError(
        fmt::format("{}: has no description of its inputs; export it with assay-worker export", path.string()));
  }
  info_ = export_info_of(parse_json(opened.description, path.string()), path.string());
  opened.module.eval();
  module_ = torch::jit::freeze(opened.module);
}

TensorList Predictor::inputs_from(const Batch& batch) const {
  if (batch.tensors.size() <= info_.inputs.size()) {
    throw DataError(fmt::format("a batch has {} tensors, the model wants {} inputs and there must be a label",
                                batch.tensors.size(), info_.inputs.size()));
  }
  return {batch.tensors.begin(), batch.tensors.begin() + static_cast<int64_t>(info_.inputs.size())};
}

torch::Tensor Predictor::run(const TensorList& inputs) {
  if (inputs.size() != info_.inputs.size()) {
    throw DataError(fmt::format("{} inputs, the model wants {}", inputs.size(), info_.inputs.size()));
  }
  std::vector<torch::jit::IValue> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputSpec& spec = info_.inputs[i];
    // Data is float32; nothing is lost when a float64 model takes it as that.
    const bool widen = inputs[i].scalar_type() == torch::kFloat && spec.dtype == torch::kDouble;
    const torch::Tensor input = widen ? inputs[i].to(torch::kDouble) : inputs[i];
    if (input.scalar_type() != spec.dtype) {
      throw DataError(fmt::format("input '{}' is {}, the model wants {}", spec.name, c10::toString(input.scalar_type()),
                                  c10::toString(spec.dtype)));
    }
    values.emplace_back(fitted(input, spec));
  }
  return module_.forward(std::move(values)).toTensor();
}

InferenceResult run_inference(Predictor& predictor, Module& judge, Loader& data, std::optional<int64_t> max_batches) {
  const torch::InferenceMode inference;
  InferenceResult result;
  result.batch_size = data.batch_size();
  data.start(0);
  if (const auto first = data.next()) {
    for (int i = 0; i < kWarmUpRuns; ++i) predictor.run(predictor.inputs_from(*first));
  }
  const int64_t num_batches = max_batches ? std::min(*max_batches, data.num_batches()) : data.num_batches();
  TensorList outputs;
  TensorList labels;
  EvalCollector collected;
  const Stopwatch whole;
  data.start(0);
  for (int64_t i = 0; i < num_batches; ++i) {
    const Batch batch = *data.next();
    const Stopwatch watch;
    outputs.push_back(predictor.run(predictor.inputs_from(batch)));
    const double seconds = watch.seconds();
    result.compute_s += seconds;
    if (batch.num_samples == result.batch_size) result.latencies_s.push_back(seconds);
    labels.push_back(label_of(batch));
    collected.add(judge.measure_output(outputs.back(), batch));
  }
  result.whole_s = whole.seconds();
  result.outputs = torch::cat(outputs);
  result.labels = torch::cat(labels);
  const EvalSums sums = collected.sums();
  result.num_samples = sums.num_samples;
  result.metrics = judge.validation_epoch_end(0, sums);
  return result;
}

double percentile(std::vector<double> values, double share) {
  ASSAY_CHECK(!values.empty(), "no values");
  std::sort(values.begin(), values.end());
  const double position = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(std::floor(position));
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (position - static_cast<double>(below));
}

}  // namespace assay
