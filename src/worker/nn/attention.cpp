#include "nn/attention.h"

#include <ATen/record_function.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/attention_kernels.h"
#include "nn/dropout.h"
#include "nn/fused.h"
#include "nn/head_rotation.h"

namespace assay {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What both passes know besides the tensors.
struct AttentionCall {
  torch::Tensor mask, prefix;  // undefined: none
  int64_t num_heads;
  bool causal;
  DropoutKey dropout;
};

template <typename T>
AttentionHead<T> head_of(const torch::Tensor& qkv, const torch::Tensor& bias, const AttentionCall& call,
                         int64_t index) {
  const int64_t length = qkv.size(1), width = qkv.size(2) / 3;
  const int64_t sample = index / call.num_heads, head = index % call.num_heads;
  AttentionHead<T> h;
  h.length = length;
  h.head_width = width / call.num_heads;
  h.stride = 3 * width;
  h.out_stride = width;
  h.q = qkv.data_ptr<T>() + sample * length * h.stride + head * h.head_width;
  h.k = h.q + width;
  h.v = h.k + width;
  h.q_bias = bias.data_ptr<T>() + head * h.head_width;
  h.k_bias = h.q_bias + width;
  h.v_bias = h.k_bias + width;
  if (call.mask.defined()) h.key_mask = call.mask.data_ptr<bool>() + sample * length;
  if (call.prefix.defined()) h.prefix = std::clamp<int64_t>(call.prefix.data_ptr<int64_t>()[sample], 0, length);
  h.scale = 1 / std::sqrt(static_cast<double>(h.head_width));
  h.causal = call.causal;
  h.dropout = call.dropout;
  h.first_row = static_cast<uint64_t>(index * length);
  return h;
}

template <typename T>
void forward_heads(const torch::Tensor& qkv, const torch::Tensor& bias, const AttentionCall& call,
                   const torch::Tensor& out, const torch::Tensor& log_sum) {
  const int64_t length = qkv.size(1), width = qkv.size(2) / 3;
  at::parallel_for(0, qkv.size(0) * call.num_heads, 1, [&](int64_t begin, int64_t end) {
    const torch::Tensor scratch = torch::empty({attention_scratch_size(length, width / call.num_heads)}, qkv.options());
    for (int64_t i = begin; i < end; ++i) {
      const AttentionHead<T> h = head_of<T>(qkv, bias, call, i);
      const int64_t offset = i / call.num_heads * length * h.out_stride + i % call.num_heads * h.head_width;
      run_attention_forward<T>(
          {h, out.data_ptr<T>() + offset, log_sum.data_ptr<T>() + i * length, scratch.data_ptr<T>()});
    }
  });
}

struct AttentionGradients {
  torch::Tensor qkv, bias;
};

template <typename T>
AttentionGradients backward_heads(const torch::Tensor& qkv, const torch::Tensor& bias, const AttentionCall& call,
                                  const torch::Tensor& out, const torch::Tensor& log_sum, const torch::Tensor& dout) {
  const int64_t length = qkv.size(1), width = qkv.size(2) / 3;
  const AttentionGradients gradients{torch::empty_like(qkv), torch::empty({qkv.size(0), 3 * width}, qkv.options())};
  at::parallel_for(0, qkv.size(0) * call.num_heads, 1, [&](int64_t begin, int64_t end) {
    const torch::Tensor scratch = torch::empty({attention_scratch_size(length, width / call.num_heads)}, qkv.options());
    for (int64_t i = begin; i < end; ++i) {
      const AttentionHead<T> h = head_of<T>(qkv, bias, call, i);
      const int64_t sample = i / call.num_heads, column = i % call.num_heads * h.head_width;
      const int64_t offset = sample * length * width + column;
      T* dq = gradients.qkv.data_ptr<T>() + sample * length * h.stride + column;
      T* dbias = gradients.bias.data_ptr<T>() + sample * h.stride + column;
      run_attention_backward<T>({h, out.data_ptr<T>() + offset, dout.data_ptr<T>() + offset,
                                 log_sum.data_ptr<T>() + i * length, dq, dq + width, dq + 2 * width, dbias,
                                 dbias + width, dbias + 2 * width, scratch.data_ptr<T>()});
    }
  });
  return {gradients.qkv, gradients.bias.sum(0)};
}

class Attention : public torch::autograd::Function<Attention> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& qkv, const torch::Tensor& bias,
                               const c10::optional<torch::Tensor>& key_mask, const c10::optional<torch::Tensor>& prefix,
                               int64_t num_heads, bool causal, const DropoutKey& dropout) {
    const AttentionCall call{key_mask.value_or(torch::Tensor()), prefix.value_or(torch::Tensor()), num_heads, causal,
                             dropout};
    const torch::Tensor out = torch::empty({qkv.size(0), qkv.size(1), qkv.size(2) / 3}, qkv.options());
    const torch::Tensor log_sum = torch::empty({qkv.size(0), num_heads, qkv.size(1)}, qkv.options());
    qkv.scalar_type() == torch::kFloat ? forward_heads<float>(qkv, bias, call, out, log_sum)
                                       : forward_heads<double>(qkv, bias, call, out, log_sum);
    context->save_for_backward({qkv, bias, call.mask, call.prefix, out, log_sum});
    context->saved_data["num_heads"] = num_heads;
    context->saved_data["causal"] = causal;
    context->saved_data["keep"] = call.dropout.keep;
    context->saved_data["seed"] = static_cast<int64_t>(call.dropout.seed);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const AttentionCall call{
        saved[2], saved[3], context->saved_data["num_heads"].toInt(), context->saved_data["causal"].toBool(),
        DropoutKey{static_cast<uint64_t>(context->saved_data["seed"].toInt()), context->saved_data["keep"].toDouble()}};
    const torch::Tensor dout = gradients[0].contiguous();
    const AttentionGradients g = dout.scalar_type() == torch::kFloat
                                     ? backward_heads<float>(saved[0], saved[1], call, saved[4], saved[5], dout)
                                     : backward_heads<double>(saved[0], saved[1], call, saved[4], saved[5], dout);
    return {g.qkv, g.bias, {}, {}, {}, {}, {}};
  }
};

}  // namespace

torch::Tensor plain_attention(const torch::Tensor& qkv, const torch::Tensor& bias, const AttentionOptions& options) {
  if (options.rotation.cosines.defined()) {
    AttentionOptions rest = options;
    rest.rotation = {};
    return plain_attention(plain_rotate_heads(qkv, bias, options.rotation), torch::zeros_like(bias), rest);
  }
  const int64_t width = bias.size(0) / 3, head_width = width / options.num_heads;
  const auto parts = (qkv + bias).chunk(3, -1);
  const auto heads = [&](const torch::Tensor& x) {
    return x.unflatten(-1, {options.num_heads, head_width}).transpose(1, 2);  // [B, H, T, d]
  };
  const torch::Tensor q = heads(parts[0]), k = heads(parts[1]), v = heads(parts[2]);
  const torch::Tensor scores = q.matmul(k.transpose(-1, -2)) / std::sqrt(static_cast<double>(head_width));
  torch::Tensor hidden;  // [1 or B, 1, 1 or T, T]
  if (options.causal) hidden = torch::ones_like(scores[0][0], torch::kBool).triu(1).unsqueeze(0).unsqueeze(0);
  if (options.causal && options.prefix.defined()) {
    const torch::Tensor keys = torch::ones_like(scores[0][0][0], torch::kLong).cumsum(0) - 1;
    hidden = hidden.logical_and(keys.unsqueeze(0).ge(options.prefix.unsqueeze(1)).unsqueeze(1).unsqueeze(1));
  }
  if (options.key_mask.defined()) {
    const torch::Tensor masked = options.key_mask.logical_not().unsqueeze(1).unsqueeze(1);
    hidden = hidden.defined() ? hidden.logical_or(masked) : masked;
  }
  torch::Tensor weights = scores;
  if (hidden.defined()) {
    // Twice: a query that sees nothing would otherwise see everything alike.
    weights = scores.masked_fill(hidden, -1e30).softmax(-1).masked_fill(hidden, 0);
  } else {
    weights = scores.softmax(-1);
  }
  weights = apply_dropout(weights, options.dropout, options.dropout_stream);
  return weights.matmul(v).transpose(1, 2).flatten(2);
}

torch::Tensor attention(const torch::Tensor& qkv, const torch::Tensor& bias, const AttentionOptions& options) {
  ASSAY_CHECK(qkv.dim() == 3 && qkv.size(2) % (3 * options.num_heads) == 0 && bias.numel() == qkv.size(2),
              "attention needs qkv [B, T, 3 D] and bias [3 D], D a multiple of the number of heads");
  if (!can_fuse({qkv, bias})) return plain_attention(qkv, bias, options);
  if (options.rotation.cosines.defined()) {
    AttentionOptions rest = options;
    rest.rotation = {};
    return attention(rotate_heads(qkv, bias, options.rotation), torch::zeros_like(bias), rest);
  }
  // An undefined tensor is not an input that autograd accepts, an absent one is.
  c10::optional<torch::Tensor> mask, prefix;
  if (options.key_mask.defined()) {
    ASSAY_CHECK(options.key_mask.scalar_type() == torch::kBool && options.key_mask.sizes() == qkv.sizes().slice(0, 2),
                "key_mask must be [B, T] bool");
    mask = options.key_mask.contiguous();
  }
  if (options.prefix.defined()) {
    ASSAY_CHECK(options.causal && options.prefix.scalar_type() == torch::kLong && options.prefix.dim() == 1 &&
                    options.prefix.size(0) == qkv.size(0),
                "prefix must be [B] int64, with causal");
    prefix = options.prefix.contiguous();
  }
  const DropoutKey dropout = draw_dropout(options.dropout, options.dropout_stream);
  RECORD_FUNCTION("assay::attention", std::vector<c10::IValue>());
  return Attention::apply(qkv.contiguous(), bias.contiguous(), mask, prefix, options.num_heads, options.causal,
                          dropout);
}

}  // namespace assay
