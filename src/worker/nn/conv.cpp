#include "nn/conv.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <torch/autograd.h>

#include <cstring>

#include "nn/fused.h"
#include "nn/linear.h"
#include "nn/norm_core.h"
#include "nn/patches.h"
#include "nn/winograd.h"

namespace assay {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Between the pixels `few` and those of `all` that are a stride apart; when `all` is the one to write, the others
// there become 0.
void copy_pixels(const torch::Tensor& few, const torch::Tensor& all, int64_t stride, bool to_few) {
  const auto pixel = static_cast<size_t>(few.size(1) * few.element_size());
  auto* packed = static_cast<char*>(few.data_ptr());
  auto* spread = static_cast<char*>(all.data_ptr());
  const int64_t height = all.size(2), width = all.size(3), rows = few.size(2), columns = few.size(3);
  at::parallel_for(0, all.size(0) * height, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      char* row = spread + static_cast<size_t>(i * width) * pixel;
      const int64_t image = i / height, y = i % height;
      if (!to_few) std::memset(row, 0, static_cast<size_t>(width) * pixel);
      if (y % stride != 0) continue;
      char* packed_row = packed + static_cast<size_t>((image * rows + y / stride) * columns) * pixel;
      for (int64_t x = 0; x < columns; ++x) {
        char* one = packed_row + static_cast<size_t>(x) * pixel;
        char* other = row + static_cast<size_t>(x * stride) * pixel;
        to_few ? std::memcpy(one, other, pixel) : std::memcpy(other, one, pixel);
      }
    }
  });
}

// Every stride-th pixel each way.
torch::Tensor take_pixels(const torch::Tensor& x, int64_t stride) {
  if (stride == 1) return x;
  const auto after = [&](int64_t extent) { return (extent + stride - 1) / stride; };
  torch::Tensor taken = torch::empty({x.size(0), x.size(1), after(x.size(2)), after(x.size(3))}, x.options(),
                                     torch::MemoryFormat::ChannelsLast);
  copy_pixels(taken, x, stride, true);
  return taken;
}
// The other way round, to the size of x.
torch::Tensor put_pixels(const torch::Tensor& taken, const torch::Tensor& x, int64_t stride) {
  if (stride == 1) return taken;
  torch::Tensor all = torch::empty_like(x);
  copy_pixels(taken, all, stride, false);
  return all;
}

// In channels-last memory a 1x1 convolution is the product of the pixels [B H W, in] with the weight.
torch::Tensor pixels_of(const torch::Tensor& x) { return x.permute({0, 2, 3, 1}); }
torch::Tensor image_of(const torch::Tensor& pixels) { return pixels.permute({0, 3, 1, 2}); }

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

// Below this the transforms of weights and ragged tiles cost more than the products save.
bool winograd_pays(const torch::Tensor& x, const torch::Tensor& weight) {
  return x.size(2) >= 12 && x.size(3) >= 12 && weight.size(0) >= 32 && weight.size(1) >= 32;
}

// Measured from 128 channels on; with few of them a patch is made of small pieces.
bool patches_pay(const torch::Tensor& weight) { return weight.size(0) >= 64 && weight.size(1) >= 64; }

// A weight [out, in, K, K] in channels-last memory as what patches are multiplied with, [out, K K in].
torch::Tensor patch_matrix(const torch::Tensor& weight) { return weight.permute({0, 2, 3, 1}).flatten(1); }

// A convolution without autograd: plain, and in channels-last memory.
struct Convolution {
  enum class Algorithm { Product, Winograd, Patches, Libtorch };
  Algorithm algorithm;
  int64_t stride;

  void save(AutogradContext* context) const {
    context->saved_data["algorithm"] = static_cast<int64_t>(algorithm);
    context->saved_data["stride"] = stride;
  }
  static Convolution saved_in(AutogradContext* context) {
    return {static_cast<Algorithm>(context->saved_data["algorithm"].toInt()), context->saved_data["stride"].toInt()};
  }

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& weight) const {
    if (algorithm == Algorithm::Winograd) return winograd_forward(x, weight);
    if (algorithm == Algorithm::Libtorch) return at::conv2d(x, weight, {}, stride, weight.size(2) / 2);
    if (algorithm == Algorithm::Patches) {
      return image_of(linear(take_patches(x, patches_of(weight)), patch_matrix(weight), WeightLayout::OutIn));
    }
    return image_of(linear(pixels_of(take_pixels(x, stride)), weight.flatten(1), WeightLayout::OutIn));
  }
  struct Gradients {
    torch::Tensor x, weight;
  };
  Gradients gradients(const torch::Tensor& dy, const torch::Tensor& x, const torch::Tensor& weight,
                      bool needs_x) const {
    if (algorithm == Algorithm::Winograd) {
      return {needs_x ? winograd_input_gradient(dy, weight) : torch::Tensor(), winograd_weight_gradient(dy, x)};
    }
    if (algorithm == Algorithm::Libtorch) {
      const int64_t padding[] = {weight.size(2) / 2, weight.size(2) / 2}, strides[] = {stride, stride};
      const auto [dx, dw, db] = at::convolution_backward(dy, x, weight, c10::nullopt, strides, padding, {1, 1}, false,
                                                         {0, 0}, 1, {needs_x, true, false});
      return {dx, dw};
    }
    Gradients g;
    const torch::Tensor pixels = pixels_of(dy);
    if (algorithm == Algorithm::Patches) {
      const PatchShape shape = patches_of(weight);
      const torch::Tensor dw = weight_gradient(pixels, take_patches(x, shape), WeightLayout::OutIn);
      g.weight = dw.view({weight.size(0), weight.size(2), weight.size(3), weight.size(1)}).permute({0, 3, 1, 2});
      if (needs_x) g.x = sum_patches(linear(pixels, patch_matrix(weight), WeightLayout::InOut), x, shape);
      return g;
    }
    const torch::Tensor matrix = weight.flatten(1);
    g.weight = weight_gradient(pixels, pixels_of(take_pixels(x, stride)), WeightLayout::OutIn).view_as(weight);
    if (needs_x) g.x = put_pixels(image_of(linear(pixels, matrix, WeightLayout::InOut)), x, stride);
    return g;
  }

 private:
  PatchShape patches_of(const torch::Tensor& weight) const { return {.kernel = weight.size(2), .stride = stride}; }
};

// Nothing when libtorch has to see the operator, or the options are other ones than those of the algorithms.
c10::optional<Convolution> convolution_of(const torch::nn::Conv2dImpl& conv, const torch::Tensor& x) {
  const torch::Tensor& weight = conv.weight;
  if (!torch::GradMode::is_enabled() || !can_fuse({x, weight}) || !is_channels_last(x) || !is_channels_last(weight)) {
    return c10::nullopt;
  }
  const int64_t kernel = weight.size(2);
  if (!is_plain(conv, kernel)) return c10::nullopt;
  Convolution result{Convolution::Algorithm::Libtorch, conv.options.stride()->at(0)};
  if (kernel == 1) result.algorithm = Convolution::Algorithm::Product;
  if (kernel == 3 && result.stride == 1 && winograd_pays(x, weight)) {
    result.algorithm = Convolution::Algorithm::Winograd;
  } else if (kernel == 3 && patches_pay(weight)) {
    result.algorithm = Convolution::Algorithm::Patches;
  }
  return result;
}

torch::Tensor in_channels_last(const torch::Tensor& x) { return x.contiguous(torch::MemoryFormat::ChannelsLast); }

class Convolve : public torch::autograd::Function<Convolve> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const Convolution& convolution) {
    context->save_for_backward({x, weight});
    convolution.save(context);
    return convolution.forward(x, weight);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const Convolution::Gradients g = Convolution::saved_in(context).gradients(in_channels_last(gradients[0]), saved[0],
                                                                              saved[1], context->needs_input_grad(0));
    return {g.x, g.weight, torch::Tensor()};
  }
};

// relu(norm(x)) is not kept but made again for the gradient of the weight.
class NormReluConvolve : public torch::autograd::Function<NormReluConvolve> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& /*norm weight*/,
                               const torch::Tensor& /*norm bias*/, const torch::Tensor& weight,
                               torch::nn::BatchNorm2dImpl* norm, const Convolution& convolution) {
    const NormKept kept = normalise(*norm, x, true);
    context->save_for_backward({x, kept.weight, kept.bias, kept.mean, kept.inverse, weight});
    convolution.save(context);
    return convolution.forward(norm_output(kept, {}), weight);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const NormKept kept{.x = saved[0],
                        .weight = saved[1],
                        .bias = saved[2],
                        .mean = saved[3],
                        .inverse = saved[4],
                        .y = {},
                        .relu = true};
    const Convolution::Gradients g =
        Convolution::saved_in(context).gradients(in_channels_last(gradients[0]), norm_output(kept, {}), saved[5], true);
    const NormGradients n = norm_gradients(in_channels_last(g.x), kept);
    const torch::Tensor none;
    return {n.x, n.weight, n.bias, g.weight, none, none};
  }
};

}  // namespace

torch::Tensor convolve(torch::nn::Conv2dImpl& conv, const torch::Tensor& x) {
  const auto convolution = convolution_of(conv, x);
  if (!convolution || convolution->algorithm == Convolution::Algorithm::Libtorch) return conv.forward(x);
  RECORD_FUNCTION("assay::convolve", std::vector<c10::IValue>());
  return Convolve::apply(x, conv.weight, *convolution);
}

torch::Tensor norm_relu_convolve(torch::nn::BatchNorm2dImpl& norm, torch::nn::Conv2dImpl& conv,
                                 const torch::Tensor& x) {
  const auto convolution = convolution_of(conv, x);
  if (!convolution || !can_fuse_norm(norm, x, {})) {
    return convolve(conv, norm_act(norm, x, {.residual = {}, .relu = true}));
  }
  RECORD_FUNCTION("assay::norm_relu_convolve", std::vector<c10::IValue>());
  return NormReluConvolve::apply(x, norm.weight, norm.bias, conv.weight, &norm, *convolution);
}

}  // namespace assay
