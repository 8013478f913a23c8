#include "nn/norm_act.h"

#include <ATen/record_function.h>
#include <torch/autograd.h>

#include "nn/batch_statistics.h"
#include "nn/norm_core.h"
#include "nn/recompute.h"

namespace assay {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class NormAct : public torch::autograd::Function<NormAct> {
 public:
  // Weight and bias are the module's; they are arguments so that autograd knows of them.
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& /*weight*/,
                               const torch::Tensor& /*bias*/, const c10::optional<torch::Tensor>& residual,
                               torch::nn::BatchNorm2dImpl* norm, bool relu) {
    const NormKept kept = normalise(*norm, x, relu);
    const torch::Tensor y = norm_output(kept, residual.value_or(torch::Tensor()));
    const bool needs_y = relu && residual.has_value();
    context->save_for_backward({x, kept.weight, kept.bias, kept.mean, kept.inverse, needs_y ? y : torch::Tensor()});
    context->saved_data["relu"] = relu;
    context->saved_data["residual"] = residual.has_value();
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor dy = gradients[0].contiguous(torch::MemoryFormat::ChannelsLast);
    const NormKept kept{.x = saved[0],
                        .weight = saved[1],
                        .bias = saved[2],
                        .mean = saved[3],
                        .inverse = saved[4],
                        .y = saved[5],
                        .relu = context->saved_data["relu"].toBool()};
    NormGradients g = norm_gradients(dy, kept);
    if (context->saved_data["residual"].toBool() && !kept.relu) g.residual = dy;
    return {g.x, g.weight, g.bias, g.residual, torch::Tensor(), torch::Tensor()};
  }
};

// libtorch's operator. A batch that is computed again has been counted.
torch::Tensor plain_norm(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x) {
  if (!norm.is_training() || !is_recomputing()) return norm.forward(x);
  return torch::batch_norm(x, norm.weight, norm.bias, {}, {}, /*training=*/true, /*momentum=*/0, norm.options.eps(),
                           at::globalContext().userEnabledCuDNN());
}

}  // namespace

torch::Tensor norm_act(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x, const NormActOptions& options) {
  if (!can_fuse_norm(norm, x, options.residual)) {
    // libtorch's operator knows nothing of other processes, so whatever can be made to fit is: other layouts, and what
    // lower precisions give to a normalisation that is not of them.
    if (shares_statistics()) {
      const auto fitted = [&](const torch::Tensor& t) {
        return t.defined() ? t.to(norm.weight.scalar_type()).contiguous(torch::MemoryFormat::ChannelsLast) : t;
      };
      const torch::Tensor input = fitted(x), residual = fitted(options.residual);
      if (can_fuse_norm(norm, input, residual)) {
        const torch::ScalarType type =
            residual.defined() ? c10::promoteTypes(x.scalar_type(), options.residual.scalar_type()) : x.scalar_type();
        return norm_act(norm, input, {.residual = residual, .relu = options.relu}).to(type);
      }
    }
    torch::Tensor y = plain_norm(norm, x);
    if (options.residual.defined()) y = y + options.residual;
    return options.relu ? y.relu() : y;
  }
  // An undefined tensor is not an input that autograd accepts, an absent one is.
  c10::optional<torch::Tensor> residual;
  if (options.residual.defined()) residual = options.residual;
  RECORD_FUNCTION("assay::norm_act", std::vector<c10::IValue>());
  return NormAct::apply(x, norm.weight, norm.bias, residual, &norm, options.relu);
}

}  // namespace assay
