#include "engine/precision/precision.h"

#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "base/error.h"

namespace assay {

namespace {

// Their weights are float32, and libtorch's CPU kernels refuse to mix that with activations in bfloat16; besides, sums
// over a batch lose too much in bfloat16.
constexpr const char* kNormalisations[] = {"batch_norm", "layer_norm", "group_norm", "instance_norm"};

OperatorPrecision::Options operators_of(const PrecisionOptions& options) {
  OperatorPrecision::Options operators{*options.mixed, options.black_list, options.white_list};
  for (const std::string name : kNormalisations) {
    const auto listed = [&](const std::vector<std::string>& list) {
      return std::find(list.begin(), list.end(), name) != list.end();
    };
    if (!listed(options.white_list) && !listed(options.black_list)) operators.black_list.push_back(name);
  }
  return operators;
}

}  // namespace

std::string precision_name(const PrecisionOptions& options) {
  switch (options.mixed.value_or(options.dtype)) {
    case torch::kDouble: return "float64";
    case torch::kBFloat16: return "bfloat16";
    case torch::kHalf: return "float16";
    default: return "float32";
  }
}

LowPrecisionWeights::LowPrecisionWeights(std::vector<torch::Tensor> parameters, torch::ScalarType dtype)
    : parameters_(std::move(parameters)) {
  for (const torch::Tensor& parameter : parameters_) copies_.push_back(parameter.detach().to(dtype));
}

std::unique_ptr<WeightSwap> LowPrecisionWeights::use() {
  std::vector<WeightSwap::Pair> pairs;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    copies_[i].copy_(parameters_[i].detach());
    pairs.push_back({parameters_[i], copies_[i]});
  }
  return std::make_unique<WeightSwap>(std::move(pairs));
}

Precision::Precision(const PrecisionOptions& options) : options_(options) {
  if (!options.mixed) return;
  ASSAY_CHECK(options.dtype == torch::kFloat, "mixed precision needs float32 weights");
  if (!options.device.is_cpu()) {
    // Autocast's operator lists are those of the CPU; on its device a vendor computes with O2's weights as they are.
    if (options.low_weights && options.black_list.empty() && options.white_list.empty()) return;
    throw ConfigError(
        fmt::format("Engine.mix_precision: on device '{}' only level O2 without custom lists is available, through the "
                    "vendor's model_to_fp16",
                    options.device.str()));
  }
  operators_ = std::make_unique<OperatorPrecision>(operators_of(options));
}

void Precision::convert(torch::nn::Module& network) const {
  if (options_.dtype != torch::kFloat) network.to(options_.dtype);
  if (!options_.device.is_cpu()) network.to(options_.device);
}

Batch Precision::convert(Batch batch) const {
  for (torch::Tensor& tensor : batch.tensors) {
    if (tensor.is_floating_point()) tensor = tensor.to(options_.dtype);
    tensor = tensor.to(options_.device);
  }
  return batch;
}

std::vector<std::string> Precision::idle_operators() {
  if (!operators_) return {};
  std::vector<std::string> listed = options_.black_list;
  listed.insert(listed.end(), options_.white_list.begin(), options_.white_list.end());
  return operators_->end_watch(listed);
}

std::unique_ptr<AutocastScope> Precision::autocast() const {
  if (!options_.mixed || !options_.device.is_cpu()) return nullptr;
  return std::make_unique<AutocastScope>(*options_.mixed);
}

}  // namespace assay
