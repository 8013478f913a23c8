#include "parallel/segment_costs.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>

#include "base/time.h"

namespace assay {

namespace {

constexpr int kRounds = 3;  // the fastest counts

TensorList made_up_inputs(const Module& module, int64_t num_samples) {
  TensorList inputs;
  for (const InputSpec& spec : module.input_spec()) {
    std::vector<int64_t> shape = spec.shape;
    for (int64_t& extent : shape) extent = extent < 0 ? num_samples : extent;
    const bool is_number = c10::isFloatingType(spec.dtype);
    const auto type = is_number ? module.model().parameters().front().scalar_type() : spec.dtype;
    inputs.push_back(is_number ? torch::randn(shape, type) : torch::randint(spec.num_values, shape, type));
  }
  return inputs;
}

// A pass through one segment; the stream behind it.
TensorList pass(Module& module, int64_t index, const TensorList& stream, const TensorList& inputs) {
  TensorList leaves;
  for (const torch::Tensor& tensor : stream) {
    leaves.push_back(tensor.detach().set_requires_grad(tensor.is_floating_point()));
  }
  const TensorList outputs = module.model().run_segment(index, leaves, inputs);
  TensorList wanted, ones;
  const auto want = [&](const torch::Tensor& tensor) {
    if (!tensor.requires_grad()) return;
    wanted.push_back(tensor);
    ones.push_back(torch::ones_like(tensor));
  };
  if (index + 1 == module.model().num_segments()) {
    want(module.model().output(outputs));
  } else {
    for (const torch::Tensor& tensor : outputs) want(tensor);
  }
  if (!wanted.empty()) torch::autograd::backward(wanted, ones);
  return outputs;
}

}  // namespace

std::vector<double> parameters_of_segments(const Network& network) {
  const auto parameters = network.named_parameters();
  std::vector<double> costs;
  for (int64_t i = 0; i < network.num_segments(); ++i) {
    double count = 0;
    for (const std::string& name : network.segment_parameters(i))
      count += static_cast<double>(parameters[name].numel());
    costs.push_back(count);
  }
  return costs;
}

std::vector<double> seconds_of_segments(Module& module, int64_t num_samples) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const torch::Tensor random = generator.get_state();
  std::vector<torch::Tensor> statistics;
  for (const torch::Tensor& buffer : module.model().buffers()) statistics.push_back(buffer.clone());
  const bool was_training = module.model().is_training();
  module.model().train();

  const TensorList inputs = made_up_inputs(module, num_samples);
  std::vector<double> costs(static_cast<size_t>(module.model().num_segments()), 1e30);
  for (int round = 0; round < kRounds; ++round) {
    TensorList stream;
    for (size_t i = 0; i < costs.size(); ++i) {
      const Stopwatch watch;
      stream = pass(module, static_cast<int64_t>(i), stream, inputs);
      costs[i] = std::min(costs[i], watch.seconds());
    }
  }

  const torch::NoGradGuard no_grad;
  for (torch::Tensor parameter : module.model().parameters()) parameter.mutable_grad().reset();
  const std::vector<torch::Tensor> buffers = module.model().buffers();
  for (size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(statistics[i]);
  generator.set_state(random);
  module.model().train(was_training);
  return costs;
}

}  // namespace assay
