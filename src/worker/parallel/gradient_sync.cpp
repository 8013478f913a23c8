#include "parallel/gradient_sync.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/text.h"
#include "nn/tensor_parallel.h"

namespace assay {

namespace {

// Called by autograd when a gradient has been added to its parameter's.
class GradientArrived final : public torch::autograd::FunctionPostHook {
 public:
  explicit GradientArrived(std::function<void()> call) : call_(std::move(call)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list& /*inputs*/) override {
    call_();
    return outputs;
  }

 private:
  std::function<void()> call_;
};

}  // namespace

torch::Tensor flat_in(const std::shared_ptr<comm::CommBuffer>& buffer, const FlatLayout& layout) {
  // The tensor keeps the buffer.
  return torch::from_blob(
      buffer->data(), {layout.size()}, [buffer](void*) {}, layout.type());
}

GradientSync::GradientSync(const SyncedParameters& parameters, const Groups& groups, int64_t num_parts)
    : groups_(groups), sparse_(parameters.sparse) {
  const auto add = [&](const NamedTensors& some) {
    if (some.empty()) return;
    Bucket bucket{.layout = FlatLayout(some, num_parts), .gradients = {}, .ready = {}, .used = {}};
    bucket.ready.resize(some.size());
    bucket.used.resize(some.size());
    buckets_.push_back(std::move(bucket));
  };
  for (const NamedTensors& group : parameters.groups) add(group);
  num_early_ = buckets_.size();
  for (const NamedTensors& group : parameters.late) add(group);
}

void GradientSync::begin_step() {
  for (Bucket& bucket : buckets_) std::fill(bucket.used.begin(), bucket.used.end(), false);
}

void GradientSync::arm() {
  if (groups_.reduces_every_part) settle(/*takes_rest=*/false);
  armed_.clear();
  for (size_t b = 0; b < num_early_; ++b) {
    for (size_t i = 0; i < buckets_[b].layout.items().size(); ++i) {
      auto node = torch::autograd::impl::grad_accumulator(buckets_[b].layout.items()[i].parameter);
      node->add_post_hook(std::make_unique<GradientArrived>([this, b, i] { take(b, i); }));
      armed_.push_back(std::move(node));
    }
  }
}

void GradientSync::take(size_t index, size_t item) {
  Bucket& bucket = buckets_[index];
  if (bucket.num_ready == 0) prepare_bucket(index);
  torch::Tensor parameter = bucket.layout.items()[item].parameter;
  torch::Tensor gradient = parameter.grad();
  if (gradient.is_sparse()) gradient = gradient.to_dense();  // its dense part is another stage's
  if (groups_.summed_over_tensor.contains(bucket.layout.items()[item].name)) {
    gradient = gradient.to(bucket.layout.type()).contiguous();
    groups_.tensor.all_reduce(gradient.data_ptr(), gradient.numel(), comm_type(gradient.scalar_type()));
  }
  const torch::NoGradGuard no_grad;
  bucket.layout.view(item, bucket.gradients).copy_(gradient);
  parameter.mutable_grad().reset();
  bucket.ready[item] = true;
  bucket.used[item] = true;
  ++bucket.num_ready;
  start_in_order();
}

// Every process starts the buckets in the same order, whatever order its gradients come in.
void GradientSync::start_in_order() {
  while (next_to_start_ < buckets_.size()) {
    Bucket& bucket = buckets_[next_to_start_];
    if (bucket.num_ready < static_cast<int64_t>(bucket.ready.size())) return;
    bucket.started = true;
    start(next_to_start_++);
    if (next_to_start_ >= max_in_flight()) complete_bucket(next_to_start_ - max_in_flight());
  }
}

void GradientSync::complete_bucket(size_t index) {
  Bucket& bucket = buckets_[index];
  if (bucket.completed) return;
  bucket.pending.wait();
  bucket.pending = {};
  complete(index);
  bucket.completed = true;
}

// Reduces what has come since the last call; what has not come counts as zeros. Early in a step only if anything came.
void GradientSync::settle(bool takes_rest) {
  const bool anything =
      std::any_of(buckets_.begin(), buckets_.end(), [](const Bucket& bucket) { return bucket.num_ready > 0; });
  if (!takes_rest && !anything) return;
  const size_t end = takes_rest ? buckets_.size() : num_early_;
  for (size_t b = next_to_start_; b < end; ++b) {
    Bucket& bucket = buckets_[b];
    for (size_t i = 0; i < bucket.ready.size(); ++i) {
      if (bucket.ready[i]) continue;
      if (bucket.layout.items()[i].parameter.grad().defined()) {
        take(b, i);
        continue;
      }
      if (bucket.num_ready == 0) prepare_bucket(b);
      bucket.layout.view(i, bucket.gradients).zero_();
      bucket.ready[i] = true;
      ++bucket.num_ready;
      start_in_order();
    }
  }
  for (size_t b = 0; b < end; ++b) {
    Bucket& bucket = buckets_[b];
    complete_bucket(b);
    bucket.completed = false;
    std::fill(bucket.ready.begin(), bucket.ready.end(), false);
    bucket.num_ready = 0;
    bucket.started = false;
  }
  next_to_start_ = 0;
}

void GradientSync::finish() {
  armed_.clear();
  settle(/*takes_rest=*/true);
  for (size_t b = 0; b < buckets_.size(); ++b) finish_bucket(b);
  drop_unused();
  for (const auto& [name, parameter] : sparse_) exchange_sparse(parameter);
}

// A parameter that no process used has no gradient, and the optimizer leaves it alone, as in one process.
void GradientSync::drop_unused() {
  std::vector<int32_t> used;
  std::vector<std::string> missing;
  for (const Bucket& bucket : buckets_) {
    for (size_t i = 0; i < bucket.used.size(); ++i) {
      used.push_back(bucket.used[i] ? 1 : 0);
      if (!bucket.used[i]) missing.push_back(bucket.layout.items()[i].name);
    }
  }
  if (!groups_.find_unused) {
    if (missing.empty()) return;
    throw ConfigError(
        fmt::format("{} parameters got no gradient in this step, the first is {}: set "
                    "Distributed.find_unused_parameters=true if the model is meant to leave some out",
                    missing.size(), missing[0]));
  }
  groups_.replicas.all_reduce(used.data(), static_cast<int64_t>(used.size()), comm::DType::I32, comm::ReduceOp::Max);
  size_t at = 0;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    for (size_t i = 0; i < buckets_[b].used.size(); ++i) {
      if (used[at++] == 0) drop_gradient(b, i);
    }
  }
}

// The rows of all processes one after the other; the optimizer adds up those that occur several times.
void GradientSync::exchange_sparse(torch::Tensor parameter) {
  comm::Communicator& group = groups_.replicas;
  if (group.size() == 1) return;
  torch::Tensor gradient = parameter.grad();
  const bool is_dense = gradient.defined() && !gradient.is_sparse();
  ASSAY_CHECK(!is_dense, "a parameter that was declared sparse has a dense gradient");
  const int64_t width = parameter.numel() / std::max<int64_t>(parameter.size(0), 1);
  torch::Tensor rows = torch::empty({0}, torch::kLong), values = torch::empty({0, width}, parameter.scalar_type());
  if (gradient.defined()) {
    gradient = gradient.coalesce();
    rows = gradient.indices()[0].contiguous();
    values = gradient.values().to(parameter.scalar_type()).reshape({-1, width}).contiguous();
  }
  const auto size = static_cast<size_t>(group.size());
  std::vector<int64_t> counts(size);
  const int64_t own = rows.size(0);
  group.all_gather(&own, counts.data(), 1, comm::DType::I64);
  const int64_t most = std::max<int64_t>(*std::max_element(counts.begin(), counts.end()), 1);
  const auto padded = [&](const torch::Tensor& some) {
    std::vector<int64_t> shape = some.sizes().vec();
    shape[0] = most;
    torch::Tensor all = torch::zeros(shape, some.options());
    all.narrow(0, 0, own).copy_(some);
    shape.insert(shape.begin(), group.size());
    torch::Tensor gathered = torch::empty(shape, some.options());
    group.all_gather(all.data_ptr(), gathered.data_ptr(), all.numel(), comm_type(all.scalar_type()));
    std::vector<torch::Tensor> parts;
    for (size_t r = 0; r < size; ++r) parts.push_back(gathered[static_cast<int64_t>(r)].narrow(0, 0, counts[r]));
    return torch::cat(parts);
  };
  rows = padded(rows);
  values = padded(values);
  std::vector<int64_t> shape = parameter.sizes().vec();
  shape[0] = values.size(0);
  parameter.mutable_grad() =
      at::_sparse_coo_tensor_unsafe(rows.unsqueeze(0), values.reshape(shape), parameter.sizes(), values.options());
}

ReplicatedGradients::ReplicatedGradients(const SyncedParameters& parameters, const Groups& groups, bool reduces)
    : GradientSync(parameters, groups, /*num_parts=*/1), group_(groups.replicas), reduces_(reduces) {
  for (Bucket& bucket : buckets()) {
    memory_.push_back(group_.allocate(bucket.layout.num_bytes()));
    bucket.gradients = flat_in(memory_.back(), bucket.layout).zero_();
  }
}

ParameterSet ReplicatedGradients::trained() const {
  ParameterSet set;
  const auto add = [&](const std::string& name, const torch::Tensor& parameter) {
    set.parameters.push_back({.name = name, .tensor = parameter, .num_dims = parameter.dim()});
  };
  for (const Bucket& bucket : buckets()) {
    for (const FlatLayout::Item& item : bucket.layout.items()) add(item.name, item.parameter);
  }
  for (const auto& [name, parameter] : sparse()) add(name, parameter);
  return set;
}

void ReplicatedGradients::start(size_t index) {
  Bucket& bucket = buckets()[index];
  if (!reduces_) return;
  bucket.pending =
      group_.start_all_reduce(bucket.gradients.data_ptr(), bucket.layout.size(), comm_type(bucket.layout.type()));
}

void ReplicatedGradients::finish_bucket(size_t index) {
  Bucket& bucket = buckets()[index];
  for (size_t i = 0; i < bucket.layout.items().size(); ++i) {
    torch::Tensor parameter = bucket.layout.items()[i].parameter;
    parameter.mutable_grad() = bucket.layout.view(i, bucket.gradients);
  }
}

void ReplicatedGradients::drop_gradient(size_t index, size_t item) {
  torch::Tensor parameter = buckets()[index].layout.items()[item].parameter;
  parameter.mutable_grad().reset();
}

}  // namespace assay
