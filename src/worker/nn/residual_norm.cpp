#include "nn/residual_norm.h"

#include <ATen/record_function.h>
#include <torch/autograd.h>
#include <torch/nn/functional/normalization.h>

#include "base/error.h"
#include "kernels/residual_norm_kernels.h"
#include "nn/dropout.h"
#include "nn/fused.h"

namespace assay {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

int64_t num_rows(const torch::Tensor& x) { return x.numel() / x.size(-1); }

template <typename T>
variable_list forward_norm(const torch::Tensor& x, const Addend& addend, const DropoutKey& dropout,
                           const LayerNormWeights& norm) {
  const int64_t rows = num_rows(x), width = x.size(-1);
  const bool adds = addend.delta.defined();
  torch::Tensor normed = torch::empty_like(x), sum = adds ? torch::empty_like(x) : x;
  torch::Tensor mean = torch::empty({rows}, x.options()), inverse = torch::empty({rows}, x.options());
  each_row_piece(rows, [&](int64_t, int64_t begin, int64_t end) {
    run_norm_forward<T>({.rows = {begin, end, width},
                         .x = x.data_ptr<T>(),
                         .delta = adds ? addend.delta.data_ptr<T>() : nullptr,
                         .delta_bias = adds ? addend.bias.data_ptr<T>() : nullptr,
                         .dropout = dropout,
                         .sum = sum.data_ptr<T>(),
                         .normed = normed.data_ptr<T>(),
                         .mean = mean.data_ptr<T>(),
                         .inverse = inverse.data_ptr<T>(),
                         .weight = norm.weight.data_ptr<T>(),
                         .bias = norm.bias.data_ptr<T>(),
                         .epsilon = static_cast<T>(norm.epsilon)});
  });
  return {normed, sum, mean, inverse};
}

struct NormGradients {
  torch::Tensor x, delta, delta_bias, weight, bias;
};

struct NormSaved {
  torch::Tensor sum, mean, inverse, weight;
  DropoutKey dropout;
  bool adds;
};

template <typename T>
NormGradients backward_norm(const torch::Tensor& dnormed, const torch::Tensor& dsum, const NormSaved& saved) {
  const int64_t rows = num_rows(saved.sum), width = saved.sum.size(-1);
  NormGradients g;
  g.x = torch::empty_like(saved.sum);
  if (saved.adds) g.delta = saved.dropout.on() ? torch::empty_like(saved.sum) : g.x;
  PieceSums<T> sums(rows, 3 * width);
  each_row_piece(rows, [&](int64_t piece, int64_t begin, int64_t end) {
    run_norm_backward<T>({.rows = {begin, end, width},
                          .dnormed = dnormed.data_ptr<T>(),
                          .dsum = dsum.defined() ? dsum.data_ptr<T>() : nullptr,
                          .sum = saved.sum.data_ptr<T>(),
                          .mean = saved.mean.data_ptr<T>(),
                          .inverse = saved.inverse.data_ptr<T>(),
                          .weight = saved.weight.data_ptr<T>(),
                          .dropout = saved.dropout,
                          .dx = g.x.data_ptr<T>(),
                          .ddelta = saved.adds ? g.delta.data_ptr<T>() : nullptr,
                          .dweight = sums.of(piece),
                          .dbias = sums.of(piece) + width,
                          .ddelta_bias = saved.adds ? sums.of(piece) + 2 * width : nullptr});
  });
  const auto totals = sums.total().chunk(3);
  g.weight = totals[0].clone();  // of its own: it becomes a parameter's gradient
  g.bias = totals[1].clone();
  if (saved.adds) g.delta_bias = totals[2].clone();
  return g;
}

class ResidualNormFunction : public torch::autograd::Function<ResidualNormFunction> {
 public:
  static variable_list forward(AutogradContext* context, const torch::Tensor& x,
                               const c10::optional<torch::Tensor>& delta,
                               const c10::optional<torch::Tensor>& delta_bias, const torch::Tensor& weight,
                               const torch::Tensor& bias, double epsilon, const DropoutKey& key) {
    const bool adds = delta.has_value();
    const Addend addend{adds ? *delta : torch::Tensor(), adds ? *delta_bias : torch::Tensor()};
    const LayerNormWeights norm{weight, bias, epsilon};
    const variable_list outputs = x.scalar_type() == torch::kFloat ? forward_norm<float>(x, addend, key, norm)
                                                                   : forward_norm<double>(x, addend, key, norm);
    context->save_for_backward({outputs[1], outputs[2], outputs[3], weight});
    context->saved_data["adds"] = adds;
    context->saved_data["keep"] = key.keep;
    context->saved_data["seed"] = static_cast<int64_t>(key.seed);
    context->set_materialize_grads(false);
    return adds ? variable_list{outputs[0], outputs[1]} : variable_list{outputs[0]};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const NormSaved known{
        saved[0],
        saved[1],
        saved[2],
        saved[3],
        DropoutKey{static_cast<uint64_t>(context->saved_data["seed"].toInt()), context->saved_data["keep"].toDouble()},
        context->saved_data["adds"].toBool()};
    const torch::Tensor dnormed = gradients[0].defined() ? gradients[0].contiguous() : torch::zeros_like(known.sum);
    torch::Tensor dsum;
    if (known.adds && gradients[1].defined()) dsum = gradients[1].contiguous();
    const NormGradients g = known.sum.scalar_type() == torch::kFloat ? backward_norm<float>(dnormed, dsum, known)
                                                                     : backward_norm<double>(dnormed, dsum, known);
    return {g.x, g.delta, g.delta_bias, g.weight, g.bias, {}, {}};
  }
};

}  // namespace

torch::Tensor layer_norm(const torch::Tensor& x, const LayerNormWeights& norm) {
  if (!can_fuse({x, norm.weight, norm.bias})) {
    return torch::layer_norm(x, {norm.weight.size(0)}, norm.weight, norm.bias, norm.epsilon);
  }
  ASSAY_CHECK(x.size(-1) == norm.weight.numel(), "x and the normalisation do not fit");
  RECORD_FUNCTION("assay::layer_norm", std::vector<c10::IValue>());
  return ResidualNormFunction::apply(x.contiguous(), c10::nullopt, c10::nullopt, norm.weight, norm.bias, norm.epsilon,
                                     DropoutKey{})[0];
}

ResidualNorm residual_norm(const torch::Tensor& x, const Addend& addend, const LayerNormWeights& norm) {
  if (!can_fuse({x, addend.delta, addend.bias, norm.weight, norm.bias})) {
    const torch::Tensor sum = x + apply_dropout(addend.delta + addend.bias, addend.dropout, addend.dropout_stream);
    return {sum, layer_norm(sum, norm)};
  }
  ASSAY_CHECK(x.size(-1) == norm.weight.numel() && x.sizes() == addend.delta.sizes(),
              "x, delta and the normalisation do not fit");
  RECORD_FUNCTION("assay::residual_norm", std::vector<c10::IValue>());
  const variable_list outputs =
      ResidualNormFunction::apply(x.contiguous(), c10::optional<torch::Tensor>(addend.delta.contiguous()),
                                  c10::optional<torch::Tensor>(addend.bias), norm.weight, norm.bias, norm.epsilon,
                                  draw_dropout(addend.dropout, addend.dropout_stream));
  return {outputs[1], outputs[0]};
}

}  // namespace assay
