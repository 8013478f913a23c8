#include "parallel/pipeline.h"

#include <algorithm>

#include "base/error.h"
#include "base/time.h"
#include "nn/tensor_parallel.h"
#include "parallel/pipeline_plan.h"

namespace assay {

namespace {

constexpr int64_t kMaxTensors = 8;
constexpr int64_t kMaxDims = 6;
constexpr int64_t kDescription = 3 + kMaxDims;  // type, wants a gradient, dimensions, extents
constexpr int64_t kHeader = 1 + kMaxTensors * kDescription;
constexpr int64_t kUndefined = -1;

torch::Tensor describe(const TensorList& tensors) {
  ASSAY_CHECK(tensors.size() <= kMaxTensors, "a stream of too many tensors");
  torch::Tensor header = torch::zeros({kHeader}, torch::kLong);
  int64_t* h = header.data_ptr<int64_t>();
  *h++ = static_cast<int64_t>(tensors.size());
  for (const torch::Tensor& tensor : tensors) {
    ASSAY_CHECK(!tensor.defined() || tensor.dim() <= kMaxDims, "a tensor of too many dimensions");
    h[0] = tensor.defined() ? static_cast<int64_t>(tensor.scalar_type()) : kUndefined;
    h[1] = tensor.defined() && tensor.requires_grad() ? 1 : 0;
    h[2] = tensor.defined() ? tensor.dim() : 0;
    for (int64_t d = 0; d < h[2]; ++d) h[3 + d] = tensor.size(d);
    h += kDescription;
  }
  return header;
}

// Images keep channels last in memory: another order would give the next chunk other algorithms.
torch::Tensor dense(const torch::Tensor& tensor) { return tensor.detach().contiguous(tensor.suggest_memory_format()); }

}  // namespace

void Pipeline::forget_sent(bool all) {
  while (!sent_.empty() && (all || sent_.front().pending.done())) {
    sent_.front().pending.wait();
    sent_.pop_front();
  }
}

void Pipeline::send(const TensorList& tensors, int64_t to_chunk, int64_t tag) {
  forget_sent(false);
  const auto to = static_cast<int>(to_chunk % stages_.size());
  const auto put = [&](const torch::Tensor& tensor) {
    if (tensor.nbytes() == 0) return;
    sent_.push_back({tensor, stages_.start_send(tensor.data_ptr(), static_cast<int64_t>(tensor.nbytes()), to,
                                                static_cast<int>(tag))});
  };
  torch::Tensor header = describe(tensors);
  TensorList payload;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    payload.push_back(dense(tensors[i]));
    const bool channels_last = payload.back().dim() == 4 && !payload.back().is_contiguous();
    if (channels_last) header[1 + static_cast<int64_t>(i) * kDescription + 1] += 2;
  }
  put(header);
  for (const torch::Tensor& tensor : payload) put(tensor);
}

TensorList Pipeline::receive(int64_t from_chunk, int64_t tag) {
  const auto from = static_cast<int>(from_chunk % stages_.size());
  const auto get = [&](const torch::Tensor& tensor) {
    if (tensor.nbytes() == 0) return;
    stages_.receive(tensor.data_ptr(), static_cast<int64_t>(tensor.nbytes()), from, static_cast<int>(tag));
  };
  const torch::Tensor header = torch::empty({kHeader}, torch::kLong);
  get(header);
  const int64_t* h = header.data_ptr<int64_t>();
  const int64_t count = *h++;
  ASSAY_CHECK(count >= 0 && count <= kMaxTensors, "a stream that makes no sense");
  TensorList tensors;
  for (int64_t i = 0; i < count; ++i, h += kDescription) {
    if (h[0] == kUndefined) {
      tensors.emplace_back();
      continue;
    }
    const auto format = (h[1] & 2) != 0 ? torch::MemoryFormat::ChannelsLast : torch::MemoryFormat::Contiguous;
    torch::Tensor tensor = torch::empty(std::vector<int64_t>(h + 3, h + 3 + h[2]),
                                        torch::TensorOptions(static_cast<torch::ScalarType>(h[0])), format);
    get(tensor);
    tensors.push_back(tensor.set_requires_grad((h[1] & 1) != 0));
  }
  return tensors;
}

TensorList Pipeline::run_chunk(Module& module, int64_t chunk, TensorList stream, const Batch& batch) const {
  const TensorList inputs = inputs_of(batch);
  const auto first = options_.edges[static_cast<size_t>(chunk)], end = options_.edges[static_cast<size_t>(chunk) + 1];
  for (int64_t i = first; i < end; ++i) stream = module.model().run_one(i, stream, inputs);
  return stream;
}

// Tags: the edge before chunk c has 2 c for activations and 2 c + 1 for gradients.
Pipeline::Kept Pipeline::forward(int64_t chunk, const MicroBatch& part, StepTools& tools) {
  Kept kept;
  if (chunk > 0) kept.inputs = receive(chunk - 1, 2 * chunk);
  const Stopwatch watch;
  {
    const std::unique_ptr<AutocastScope> scope = tools.autocast();
    kept.outputs = run_chunk(tools.module, chunk, kept.inputs, part.batch);
    if (chunk + 1 == num_chunks()) kept.loss = tools.module.training_loss(kept.outputs, part.batch);
  }
  tools.forward_s += watch.seconds();
  if (chunk + 1 < num_chunks()) send(kept.outputs, chunk + 1, 2 * (chunk + 1));
  return kept;
}

void Pipeline::backward(int64_t chunk, const Kept& kept, const MicroBatch& part, StepTools& tools) {
  if (kept.loss.defined()) {
    const Stopwatch watch;
    tools.backward(kept.loss, part.share);
    tools.backward_s += watch.seconds();
  } else {
    const TensorList gradients = receive(chunk + 1, 2 * (chunk + 1) + 1);
    const Stopwatch watch;
    TensorList outputs, known;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined() || !kept.outputs[i].requires_grad()) continue;
      outputs.push_back(kept.outputs[i]);
      known.push_back(gradients[i]);
    }
    torch::autograd::backward(outputs, known);
    tools.backward_s += watch.seconds();
  }
  if (chunk == 0) return;
  TensorList gradients;
  for (const torch::Tensor& input : kept.inputs) gradients.push_back(input.grad());
  send(gradients, chunk - 1, 2 * chunk + 1);
}

double Pipeline::run(const std::vector<MicroBatch>& parts, StepTools& tools) {
  const PipelineShape shape{.num_stages = stages_.size(),
                            .virtual_stages = options_.virtual_stages,
                            .num_micro_batches = static_cast<int64_t>(parts.size())};
  std::map<std::pair<int64_t, int64_t>, Kept> kept;  // by chunk and micro-batch
  double loss = 0;
  for (const PipelineStep& step : pipeline_steps(shape, stages_.rank())) {
    const MicroBatch& part = parts[static_cast<size_t>(step.micro_batch)];
    const std::pair key(step.chunk, step.micro_batch);
    if (step.forward) {
      Kept& now = kept[key] = forward(global_chunk(step.chunk), part, tools);
      if (now.loss.defined()) loss += now.loss.item<double>() * part.share;
    } else {
      backward(global_chunk(step.chunk), kept.at(key), part, tools);
      kept.erase(key);
    }
  }
  forget_sent(/*all=*/true);
  return loss;
}

TensorList Pipeline::run_forward(Module& module, const Batch& batch) {
  TensorList last;
  for (int64_t local = 0; local < options_.virtual_stages; ++local) {
    const int64_t chunk = global_chunk(local);
    const TensorList outputs =
        run_chunk(module, chunk, chunk > 0 ? receive(chunk - 1, 2 * chunk) : TensorList(), batch);
    if (chunk + 1 == num_chunks()) {
      last = outputs;
    } else {
      send(outputs, chunk + 1, 2 * (chunk + 1));
    }
  }
  forget_sent(/*all=*/true);
  return last;
}

}  // namespace assay
