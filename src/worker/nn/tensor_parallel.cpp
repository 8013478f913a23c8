#include "nn/tensor_parallel.h"

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/autograd.h>

#include "base/error.h"
#include "nn/linear.h"

namespace assay {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

torch::Tensor summed(comm::Communicator& group, const torch::Tensor& x) {
  torch::Tensor sum = x.clone();  // in the layout of x, which is the same everywhere
  if (!sum.is_non_overlapping_and_dense()) sum = sum.contiguous();
  group.all_reduce(sum.data_ptr(), sum.numel(), comm_type(sum.scalar_type()));
  return sum;
}

// [B, T / n, ...] of every process -> [B, T, ...].
torch::Tensor gathered(comm::Communicator& group, const torch::Tensor& part) {
  const torch::Tensor mine = part.contiguous();
  std::vector<int64_t> shape = mine.sizes().vec();
  shape.insert(shape.begin(), group.size());
  torch::Tensor all = torch::empty(shape, mine.options());
  group.all_gather(mine.data_ptr(), all.data_ptr(), mine.numel(), comm_type(mine.scalar_type()));
  return all.transpose(0, 1).flatten(1, 2);
}

torch::Tensor sequence_part(comm::Communicator& group, const torch::Tensor& x) {
  if (x.size(1) % group.size() != 0) {
    throw ConfigError(fmt::format(
        "Distributed.sequence_parallel: the sequence length ({}) must be divisible by the {} tensor-parallel processes",
        x.size(1), group.size()));
  }
  const int64_t length = x.size(1) / group.size();
  return x.narrow(1, group.rank() * length, length);
}

// The sum over all processes of [B, T, ...], of which each gets its part of the sequence.
torch::Tensor scattered_sum(comm::Communicator& group, const torch::Tensor& x) {
  const torch::Tensor own_part = sequence_part(group, x);  // rejects what is not divisible
  const torch::Tensor by_part = x.unflatten(1, {group.size(), own_part.size(1)}).transpose(0, 1).contiguous();
  torch::Tensor sum = torch::empty(own_part.sizes(), x.options());
  group.reduce_scatter(by_part.data_ptr(), sum.data_ptr(), sum.numel(), comm_type(sum.scalar_type()));
  return sum;
}

// What an operator below does with activations on the way forward, and with gradients on the way back.
enum class Exchange { Nothing, Sum, Gather, Part, ScatteredSum };

torch::Tensor exchange(Exchange what, comm::Communicator& group, const torch::Tensor& x) {
  switch (what) {
    case Exchange::Sum: return summed(group, x);
    case Exchange::Gather: return gathered(group, x);
    case Exchange::Part: return sequence_part(group, x).contiguous();
    case Exchange::ScatteredSum: return scattered_sum(group, x);
    case Exchange::Nothing: break;
  }
  return x.view_as(x);
}

class ExchangeFunction : public torch::autograd::Function<ExchangeFunction> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, comm::Communicator* group,
                               Exchange forward, Exchange backward) {
    context->saved_data["group"] = reinterpret_cast<int64_t>(group);
    context->saved_data["backward"] = static_cast<int64_t>(backward);
    return exchange(forward, *group, x);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    auto* group = reinterpret_cast<comm::Communicator*>(context->saved_data["group"].toInt());
    const auto what = static_cast<Exchange>(context->saved_data["backward"].toInt());
    return {exchange(what, *group, gradients[0]), {}, {}, {}};
  }
};

// The values of a part of the classes that softmax needs from all of them.
struct SoftmaxSums {
  torch::Tensor largest, sum, chosen;  // [N] each: of the logits, of exp(logit - largest), the label's logit
};

SoftmaxSums softmax_sums(comm::Communicator& group, const torch::Tensor& logits, const torch::Tensor& label,
                         const PartRange& range) {
  const auto reduce = [&](torch::Tensor values, comm::ReduceOp op) {
    group.all_reduce(values.data_ptr(), values.numel(), comm_type(values.scalar_type()), op);
    return values;
  };
  SoftmaxSums s;
  s.largest = reduce(std::get<0>(logits.max(1)).contiguous(), comm::ReduceOp::Max);
  s.sum = reduce((logits - s.largest.unsqueeze(1)).exp_().sum(1), comm::ReduceOp::Sum);
  const torch::Tensor here = label.ge(range.begin).logical_and(label.lt(range.end));
  const torch::Tensor row = (label - range.begin).clamp(0, range.count() - 1).unsqueeze(1);
  s.chosen = reduce(logits.gather(1, row).squeeze(1).masked_fill(here.logical_not(), 0), comm::ReduceOp::Sum);
  return s;
}

// Logits [N, V part] -> mean loss; the gradient of the logits is made on the way forward, in their place.
class SplitCrossEntropy : public torch::autograd::Function<SplitCrossEntropy> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& logits, const torch::Tensor& label,
                               comm::Communicator* group, int64_t begin) {
    const PartRange range{begin, begin + logits.size(1)};
    const SoftmaxSums s = softmax_sums(*group, logits, label, range);
    const auto rows = static_cast<double>(label.size(0));
    const torch::Tensor loss = (s.sum.log() + s.largest - s.chosen).sum() / rows;
    torch::Tensor gradient = (logits - s.largest.unsqueeze(1)).exp_().div_(s.sum.unsqueeze(1));
    const torch::Tensor here = label.ge(range.begin).logical_and(label.lt(range.end)).nonzero().squeeze(1);
    const torch::Tensor column = label.index_select(0, here) - range.begin;
    gradient.index_put_({here, column}, gradient.index({here, column}) - 1);
    context->save_for_backward({gradient.div_(rows)});
    return loss;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {context->get_saved_variables()[0] * gradients[0], {}, {}, {}};
  }
};

}  // namespace

comm::DType comm_type(torch::ScalarType type) {
  switch (type) {
    case torch::kDouble: return comm::DType::F64;
    case torch::kFloat: return comm::DType::F32;
    case torch::kBFloat16: return comm::DType::BF16;
    case torch::kHalf: return comm::DType::F16;
    case torch::kLong: return comm::DType::I64;
    case torch::kInt: return comm::DType::I32;
    case torch::kByte:
    case torch::kBool: return comm::DType::U8;
    default: throw InternalError(fmt::format("tensors of {} cannot be sent", c10::toString(type)));
  }
}

bool can_be_sparse(const torch::Tensor& table) {
  return table.scalar_type() == torch::kFloat || table.scalar_type() == torch::kDouble;
}

PartRange part_range(int64_t extent, int64_t rank, int64_t size) {
  return {extent * rank / size, extent * (rank + 1) / size};
}

torch::Tensor TensorParallel::enter(const torch::Tensor& x) const {
  if (!splits_sequence()) return enter_whole(x);
  return ExchangeFunction::apply(x, group_, Exchange::Gather, Exchange::ScatteredSum);
}

torch::Tensor TensorParallel::enter_whole(const torch::Tensor& x) const {
  return on() ? ExchangeFunction::apply(x, group_, Exchange::Nothing, Exchange::Sum) : x;
}

torch::Tensor TensorParallel::leave(const torch::Tensor& x) const {
  if (!on()) return x;
  return sequence_ ? ExchangeFunction::apply(x, group_, Exchange::ScatteredSum, Exchange::Gather)
                   : ExchangeFunction::apply(x, group_, Exchange::Sum, Exchange::Nothing);
}

torch::Tensor TensorParallel::split_sequence(const torch::Tensor& x) const {
  if (!splits_sequence()) return x;
  return ExchangeFunction::apply(x, group_, Exchange::Part, Exchange::Gather);
}

torch::Tensor TensorParallel::join_sequence(const torch::Tensor& x) const {
  if (!splits_sequence()) return x;
  return ExchangeFunction::apply(x, group_, Exchange::Gather, Exchange::Part);
}

torch::Tensor TensorParallel::embedding(const torch::Tensor& part, int64_t num_rows, const torch::Tensor& ids,
                                        bool sparse) const {
  const auto look_up = [&](const torch::Tensor& rows) {
    return torch::embedding(part, rows, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, sparse);
  };
  if (!on()) return look_up(ids);
  // Only rows that are here are looked up, so that no other row gets a gradient, not even one of zeros.
  const torch::Tensor flat = ids.flatten() - part_range(num_rows, rank(), size()).begin;
  const torch::Tensor here = flat.ge(0).logical_and(flat.lt(part.size(0))).nonzero().squeeze(1);
  const torch::Tensor zeros = torch::zeros({flat.size(0), part.size(1)}, part.options().requires_grad(false));
  const torch::Tensor placed = zeros.index_copy(0, here, look_up(flat.index_select(0, here)));
  std::vector<int64_t> shape = ids.sizes().vec();
  shape.push_back(part.size(1));
  return ExchangeFunction::apply(placed, group_, Exchange::Sum, Exchange::Nothing).view(shape);
}

torch::Tensor TensorParallel::join_outputs(const torch::Tensor& x, int64_t num_outputs) const {
  if (!on()) return x;
  // Parts may differ in size: each is placed among zeros, and the sum has them all.
  const PartRange range = part_range(num_outputs, rank(), size());
  const torch::Tensor placed = torch::constant_pad_nd(x, {range.begin, num_outputs - range.end});
  return ExchangeFunction::apply(placed, group_, Exchange::Sum, Exchange::Nothing);
}

torch::Tensor TensorParallel::linear_cross_entropy(const torch::Tensor& x, const VocabularyLayer& part,
                                                   int64_t num_outputs, const torch::Tensor& label) const {
  if (!on()) return assay::linear_cross_entropy(x, part, label);
  torch::Tensor rows = x, classes = label;
  if (label.eq(kIgnoredLabel).any().item<bool>()) {
    const torch::Tensor counts = label.ne(kIgnoredLabel).nonzero().squeeze(1);
    rows = x.index_select(0, counts);
    classes = label.index_select(0, counts);
  }
  if (classes.numel() > 0) check_labels(classes, num_outputs);
  torch::Tensor logits = linear(rows, part.weight, WeightLayout::OutIn);
  if (part.bias.defined()) logits = logits + part.bias;
  RECORD_FUNCTION("assay::split_cross_entropy", std::vector<c10::IValue>());
  return SplitCrossEntropy::apply(logits, classes.contiguous(), group_, part_range(num_outputs, rank(), size()).begin);
}

}  // namespace assay
