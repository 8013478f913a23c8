#include "nn/conv.h"

#include <torch/nn/modules/conv.h>

#include <mutex>
#include <set>
#include <thread>

#include "fused_check.h"
#include "nn/patches.h"
#include "nn/winograd.h"

namespace assay {
namespace {

struct Shape {
  int64_t batch, in, out, height, width, kernel, stride;
};

torch::Tensor numbers(at::IntArrayRef shape) {
  return torch::randn(shape, torch::kDouble).contiguous(torch::MemoryFormat::ChannelsLast);
}
std::vector<torch::Tensor> inputs_of(const Shape& s) {
  return {numbers({s.batch, s.in, s.height, s.width}), numbers({s.out, s.in, s.kernel, s.kernel})};
}

torch::nn::Conv2dOptions options_of(const Shape& s) {
  return torch::nn::Conv2dOptions(s.in, s.out, s.kernel).stride(s.stride).padding(s.kernel / 2).bias(false);
}

// convolve() with x[1] as the weight; `node` is what autograd must have seen.
FusedFunction convolve_with(const Shape& s, const std::string& node) {
  return [s, node](const auto& x) {
    torch::nn::Conv2d conv(options_of(s));
    conv->weight = x[1];
    const torch::Tensor y = convolve(*conv, x[0]);
    if (y.requires_grad()) {
      EXPECT_NE(y.grad_fn()->name().find(node), std::string::npos) << y.grad_fn()->name();
    }
    return y;
  };
}
FusedFunction plain_with(const Shape& s) {
  return [s](const auto& x) { return torch::conv2d(x[0], x[1], {}, s.stride, s.kernel / 2); };
}
std::string name_of(const Shape& s) {
  std::string name;
  for (const int64_t value : {s.batch, s.in, s.out, s.height, s.width, s.kernel, s.stride}) {
    name += std::to_string(value) + " ";
  }
  return name;
}

TEST(Convolve, EqualsLibtorchs) {
  torch::manual_seed(51);
  for (const Shape& s :
       {// Winograd: whole and ragged tiles, channels that fill vectors and do not, one and many chunks.
        Shape{2, 32, 32, 12, 12, 3, 1}, Shape{3, 33, 35, 13, 18, 3, 1}, Shape{1, 64, 32, 56, 40, 3, 1},
        // Patches: strides that fit the image and do not, smaller than the kernel too.
        Shape{2, 64, 64, 12, 12, 3, 2}, Shape{2, 65, 70, 9, 14, 3, 2}, Shape{2, 64, 64, 7, 7, 3, 1},
        Shape{1, 64, 64, 8, 7, 3, 3}, Shape{3, 64, 64, 1, 2, 3, 1},
        // Products, with every pixel, every second and every third one, of even and odd sizes.
        Shape{2, 5, 7, 6, 4, 1, 1}, Shape{2, 33, 16, 7, 9, 1, 2}, Shape{1, 8, 24, 10, 11, 1, 3}}) {
    expect_same_pass(convolve_with(s, "Convolve"), plain_with(s), inputs_of(s), name_of(s));
  }
}

TEST(Convolve, UsesLibtorchForOtherShapes) {
  for (const Shape& s : {Shape{2, 16, 16, 12, 12, 3, 2}, Shape{2, 32, 32, 7, 7, 3, 1}, Shape{2, 16, 16, 12, 12, 3, 1},
                         Shape{2, 3, 16, 16, 16, 7, 2}}) {
    expect_same_pass(convolve_with(s, "Convolution"), plain_with(s), inputs_of(s), name_of(s));
  }
}

TEST(Convolve, UsesLibtorchForOtherOptions) {
  torch::manual_seed(52);
  const Shape s{2, 32, 32, 12, 12, 3, 1};
  const torch::Tensor x = torch::randn({2, 32, 12, 12}).contiguous(torch::MemoryFormat::ChannelsLast);
  for (const auto& options :
       {options_of(s).bias(true), options_of(s).groups(4), options_of(s).dilation(2), options_of(s).padding(0),
        options_of(s).padding_mode(torch::kReflect), options_of(s).stride({1, 2})}) {
    torch::nn::Conv2d conv(options);
    conv->to(torch::kFloat);
    conv->weight.set_data(conv->weight.contiguous(torch::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(convolve(*conv, x).equal(conv->forward(x)));
  }
}

TEST(Convolve, UsesLibtorchInEvaluation) {
  const torch::NoGradGuard no_grad;
  torch::nn::Conv2d conv(options_of({2, 32, 32, 12, 12, 3, 1}));
  const torch::Tensor x = torch::randn({2, 32, 12, 12}).contiguous(torch::MemoryFormat::ChannelsLast);
  conv->weight.set_data(conv->weight.contiguous(torch::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(convolve(*conv, x).equal(conv->forward(x)));
}

TEST(Convolve, MatchesFiniteDifferences) {
  torch::manual_seed(53);
  expect_finite_differences(convolve_with({1, 2, 3, 5, 4, 1, 2}, "Convolve"), inputs_of({1, 2, 3, 5, 4, 1, 2}));
  // By patches, which begin at 64 channels: too many weights for all of them.
  const Shape patches{1, 64, 64, 4, 3, 3, 2};
  expect_finite_differences(convolve_with(patches, "Convolve"), inputs_of(patches), 53);
  // Winograd's own functions, which small shapes do not reach through convolve().
  const auto differences = [](const torch::Tensor& x, const torch::Tensor& weight) {
    const torch::Tensor dy = numbers({x.size(0), weight.size(0), x.size(2), x.size(3)});
    const auto value = [&] { return (winograd_forward(x, weight) * dy).sum().item<double>(); };
    const std::pair<torch::Tensor, torch::Tensor> pairs[] = {{x, winograd_input_gradient(dy, weight)},
                                                             {weight, winograd_weight_gradient(dy, x)}};
    for (const auto& [input, gradient] : pairs) {
      auto* data = input.data_ptr<double>();
      for (int64_t i = 0; i < input.numel(); ++i) {
        const double before = data[i];
        data[i] = before + 1e-5;
        const double above = value();
        data[i] = before - 1e-5;
        const double below = value();
        data[i] = before;
        EXPECT_NEAR(gradient.data_ptr<double>()[i], (above - below) / 2e-5, 1e-6) << i;
      }
    }
  };
  differences(numbers({2, 3, 6, 5}), numbers({2, 3, 3, 3}));
}

// Both are linear, so that is what makes one the gradient of the other.
TEST(Patches, SumsByTheTransposeOfTaking) {
  torch::manual_seed(56);
  for (const Shape& s : {Shape{2, 3, 0, 6, 5, 3, 1}, Shape{2, 4, 0, 7, 8, 3, 2}, Shape{1, 2, 0, 9, 9, 5, 3},
                         Shape{1, 2, 0, 1, 2, 3, 2}}) {
    const PatchShape shape{.kernel = s.kernel, .stride = s.stride};
    const torch::Tensor x = numbers({s.batch, s.in, s.height, s.width});
    const torch::Tensor taken = take_patches(x, shape), others = torch::randn_like(taken);
    const auto there = (taken * others).sum().item<double>();
    EXPECT_NEAR((x * sum_patches(others, x, shape)).sum().item<double>(), there, 1e-10) << name_of(s);
    EXPECT_EQ(taken.eq(0).all().item<bool>(), false);
  }
}

TEST(Convolve, DoesNotDependOnTheNumberOfThreads) {
  torch::manual_seed(54);
  for (const Shape& s : {Shape{4, 48, 32, 20, 20, 3, 1}, Shape{4, 32, 64, 20, 20, 1, 2}}) {
    expect_same_on_any_threads(convolve_with(s, "Convolve"), inputs_of(s));
  }
}

TEST(NormReluConvolve, EqualsItsParts) {
  torch::manual_seed(55);
  for (const Shape& s : {Shape{2, 32, 40, 14, 14, 3, 1}, Shape{2, 16, 24, 14, 14, 3, 2}, Shape{2, 64, 72, 14, 14, 3, 2},
                         Shape{2, 16, 24, 9, 9, 1, 1}}) {
    const torch::Tensor scale = torch::rand({s.in}, torch::kDouble) + 0.5, shift = torch::randn({s.in}, torch::kDouble);
    torch::Tensor statistics[2];
    const auto with = [&](bool fused) {
      return [&, fused](const auto& x) {
        torch::nn::Conv2d conv(options_of(s));
        torch::nn::BatchNorm2d norm(s.in);
        norm->to(x[0].scalar_type());
        conv->weight = x[1];
        norm->weight = x[2];
        norm->bias = x[3];
        const torch::Tensor y = fused ? norm_relu_convolve(*norm, *conv, x[0])
                                      : torch::conv2d(norm->forward(x[0]).relu(), x[1], {}, s.stride, s.kernel / 2);
        if (fused && y.requires_grad()) {
          EXPECT_NE(y.grad_fn()->name().find("NormReluConvolve"), std::string::npos) << y.grad_fn()->name();
        }
        statistics[fused] = torch::cat({norm->running_mean, norm->running_var}).to(torch::kDouble);
        EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
        return y;
      };
    };
    std::vector<torch::Tensor> inputs = inputs_of(s);
    inputs.push_back(scale);
    inputs.push_back(shift);
    expect_same_pass(with(true), with(false), inputs, name_of(s));
    EXPECT_TRUE(torch::allclose(statistics[0], statistics[1], 1e-5, 1e-6));
  }
}

TEST(NormReluConvolve, MatchesFiniteDifferences) {
  torch::manual_seed(57);
  for (const Shape& s : {Shape{2, 3, 2, 4, 3, 1, 1}, Shape{2, 2, 3, 5, 4, 3, 2}}) {
    std::vector<torch::Tensor> inputs = inputs_of(s);
    inputs.push_back(torch::rand({s.in}, torch::kDouble) + 0.5);
    inputs.push_back(torch::randn({s.in}, torch::kDouble));
    expect_finite_differences(
        [&](const auto& x) {
          torch::nn::Conv2d conv(options_of(s));
          torch::nn::BatchNorm2d norm(s.in);
          norm->to(torch::kDouble);
          conv->weight = x[1];
          norm->weight = x[2];
          norm->bias = x[3];
          const torch::Tensor y = norm_relu_convolve(*norm, *conv, x[0]);
          if (y.requires_grad()) {
            EXPECT_NE(y.grad_fn()->name().find("NormReluConvolve"), std::string::npos) << y.grad_fn()->name();
          }
          return y;
        },
        inputs);
  }
}

TEST(Loops, RunOnAllThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  at::parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  at::set_num_threads(before);
  EXPECT_EQ(seen.size(), 2u) << "libtorch's header runs loops on one thread when compiled without -fopenmp";
}

}  // namespace
}  // namespace assay
