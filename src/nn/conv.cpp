#include "nn/conv.h"

#include <torch/autograd.h>

#include "nn/fused.h"
#include "nn/linear.h"
#include "nn/winograd.h"

namespace assay {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Winograd : public torch::autograd::Function<Winograd> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight) {
    context->save_for_backward({x, weight});
    return winograd_forward(x, weight);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor dy = gradients[0].contiguous(torch::MemoryFormat::ChannelsLast);
    return {context->needs_input_grad(0) ? winograd_input_gradient(dy, saved[1]) : torch::Tensor(),
            context->needs_input_grad(1) ? winograd_weight_gradient(dy, saved[0]) : torch::Tensor()};
  }
};

// In channels-last memory a 1x1 convolution is the product of the pixels [B H W, in] with the weight.
torch::Tensor pointwise(torch::Tensor x, const torch::Tensor& weight, int64_t stride) {
  if (stride > 1) x = x.slice(2, 0, c10::nullopt, stride).slice(3, 0, c10::nullopt, stride);
  const torch::Tensor pixels = x.permute({0, 2, 3, 1}).contiguous();
  return linear(pixels, weight.flatten(1), WeightLayout::OutIn).permute({0, 3, 1, 2});
}

// Below this the transforms of weights and ragged tiles cost more than the products save.
bool winograd_pays(const torch::Tensor& x, const torch::Tensor& weight) {
  return x.size(2) >= 12 && x.size(3) >= 12 && weight.size(0) >= 16 && weight.size(1) >= 16;
}

// A square kernel of this size, padded so that stride 1 keeps the size of the image, and nothing else about it.
bool is_plain(const torch::nn::Conv2dImpl& conv, int64_t kernel) {
  const auto& o = conv.options;
  const auto* padding = c10::get_if<torch::ExpandingArray<2>>(&o.padding());
  const auto both = [](const torch::ExpandingArray<2>& values, int64_t value) {
    return values->at(0) == value && values->at(1) == value;
  };
  return both(o.kernel_size(), kernel) && padding && both(*padding, kernel / 2) && both(o.dilation(), 1) &&
         o.stride()->at(0) == o.stride()->at(1) && o.groups() == 1 && !o.bias() &&
         c10::get_if<torch::enumtype::kZeros>(&o.padding_mode());
}

}  // namespace

torch::Tensor convolve(torch::nn::Conv2dImpl& conv, const torch::Tensor& x) {
  const torch::Tensor& weight = conv.weight;
  if (torch::GradMode::is_enabled() && can_fuse({x, weight}) && is_channels_last(x)) {
    if (is_plain(conv, 1)) return pointwise(x, weight, conv.options.stride()->at(0));
    if (is_plain(conv, 3) && conv.options.stride()->at(0) == 1 && is_channels_last(weight) &&
        winograd_pays(x, weight)) {
      return Winograd::apply(x, weight);
    }
  }
  return conv.forward(x);
}

}  // namespace assay
