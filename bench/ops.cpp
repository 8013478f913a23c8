// Forward and backward of each fused operator beside the same from libtorch's operators, on sizes of GPT-2, BERT base,
// GLM and ResNet-50, of the matrix products beside libtorch's, and an update of AdamW beside libtorch's. The best of
// several alternating runs.
//   ops [TEXT]   only the rows whose name has this text
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "base/time.h"
#include "device/allocator.h"
#include "device/blas_kernels.h"
#include "device/threads.h"
#include "engine/optimizer/fused_optimizer.h"
#include "nn/attention.h"
#include "nn/bias_gelu.h"
#include "nn/conv.h"
#include "nn/conv_transpose.h"
#include "nn/head_rotation.h"
#include "nn/linear.h"
#include "nn/linear_cross_entropy.h"
#include "nn/norm_act.h"
#include "nn/residual_norm.h"

namespace assay {
namespace {

using Operator = std::function<torch::Tensor(const std::vector<torch::Tensor>&)>;

double once(const Operator& f, const std::vector<torch::Tensor>& inputs, const torch::Tensor& gradient) {
  for (const torch::Tensor& input : inputs) input.mutable_grad() = torch::Tensor();
  const Stopwatch watch;
  f(inputs).backward(gradient);
  return watch.seconds() * 1e3;
}

std::string g_wanted;  // text that a row's name must have

// Milliseconds of one run each.
void compare(const std::string& name, const std::function<double()>& fused, const std::function<double()>& plain) {
  double ours = std::numeric_limits<double>::max(), theirs = ours;
  const Stopwatch watch;
  for (int i = 0; i < 3 || (i < 20 && watch.seconds() < 2); ++i) {
    ours = std::min(ours, fused());
    theirs = std::min(theirs, plain());
  }
  fmt::print("{:<58}{:>10.2f}{:>13.2f}{:>8.2f}\n", name, ours, theirs, theirs / ours);
  std::fflush(stdout);
}

void row(const std::string& name, const std::vector<torch::Tensor>& values, const Operator& fused,
         const Operator& plain) {
  if (name.find(g_wanted) == std::string::npos) return;
  std::vector<torch::Tensor> inputs;
  for (const torch::Tensor& value : values) inputs.push_back(value.detach().requires_grad_(true));
  const torch::Tensor gradient = torch::rand_like(plain(inputs).detach());
  compare(
      name, [&] { return once(fused, inputs, gradient); }, [&] { return once(plain, inputs, gradient); });
}

void attention_rows() {
  for (const double dropout : {0.0, 0.1}) {
    const AttentionOptions causal{.num_heads = 12, .causal = true, .key_mask = {}, .dropout = dropout};
    row(
        fmt::format("attention, causal, 1 x 1024, dropout {}", dropout),
        {torch::randn({1, 1024, 2304}), torch::randn({2304})},
        [&](const auto& in) { return attention(in[0], in[1], causal); },
        [&](const auto& in) { return plain_attention(in[0], in[1], causal); });
    const AttentionOptions padded{
        .num_heads = 12, .causal = false, .key_mask = torch::ones({8, 128}, torch::kBool), .dropout = dropout};
    row(
        fmt::format("attention, padding mask, 8 x 128, dropout {}", dropout),
        {torch::randn({8, 128, 2304}), torch::randn({2304})},
        [&](const auto& in) { return attention(in[0], in[1], padded); },
        [&](const auto& in) { return plain_attention(in[0], in[1], padded); });
  }
  const AttentionOptions prefixed{
      .num_heads = 12, .causal = true, .key_mask = {}, .prefix = torch::full({2}, 384, torch::kLong)};
  row(
      "attention, prefix of 384, 2 x 512", {torch::randn({2, 512, 2304}), torch::randn({2304})},
      [&](const auto& in) { return attention(in[0], in[1], prefixed); },
      [&](const auto& in) { return plain_attention(in[0], in[1], prefixed); });
  // GLM's two positions a token.
  const torch::Tensor positions = torch::arange(512).expand({2, 2, 512}).contiguous();
  const HeadRotation rotation = Rotations(32, 512, 10'000).at(positions, torch::zeros({1}));
  row(
      "rotation of heads, 2 x 512", {torch::randn({2, 512, 2304}), torch::randn({2304})},
      [&](const auto& in) { return rotate_heads(in[0], in[1], rotation); },
      [&](const auto& in) { return plain_rotate_heads(in[0], in[1], rotation); });
  AttentionOptions rotated = prefixed;
  rotated.rotation = rotation;
  row(
      "attention, prefix of 384, rotation, 2 x 512", {torch::randn({2, 512, 2304}), torch::randn({2304})},
      [&](const auto& in) { return attention(in[0], in[1], rotated); },
      [&](const auto& in) { return plain_attention(in[0], in[1], rotated); });
}

void element_rows() {
  const std::vector<torch::Tensor> norm = {torch::randn({1024, 768}), torch::randn({1024, 768}), torch::randn({768}),
                                           torch::rand({768}), torch::randn({768})};
  for (const double dropout : {0.0, 0.1}) {
    row(
        fmt::format("bias, dropout {}, residual, layer norm", dropout), norm,
        [&](const auto& in) {
          return residual_norm(in[0], {in[1], in[2], dropout}, {in[3], in[4], 1e-5}).normed;
        },
        [&](const auto& in) {
          const torch::Tensor sum = in[0] + torch::dropout(in[1] + in[2], dropout, dropout > 0);
          return torch::layer_norm(sum, {768}, in[3], in[4], 1e-5);
        });
  }
  row(
      "layer norm", {norm[0], norm[3], norm[4]},
      [](const auto& in) {
        return layer_norm(in[0], {in[1], in[2], 1e-5});
      },
      [](const auto& in) { return torch::layer_norm(in[0], {768}, in[1], in[2], 1e-5); });
  const std::vector<torch::Tensor> wide = {torch::randn({1024, 3072}), torch::randn({3072})};
  row(
      "bias, GELU (tanh)", wide, [](const auto& in) { return bias_gelu(in[0], in[1], Gelu::Tanh); },
      [](const auto& in) { return torch::gelu(in[0] + in[1], "tanh"); });
  row(
      "bias, GELU (erf)", wide, [](const auto& in) { return bias_gelu(in[0], in[1], Gelu::Erf); },
      [](const auto& in) { return torch::gelu(in[0] + in[1], "none"); });
  row(
      "bias, GELU (tanh), linear 3072 to 768", {wide[0], wide[1], torch::randn({3072, 768})},
      [](const auto& in) { return gelu_linear(in[0], in[1], Gelu::Tanh, in[2], WeightLayout::InOut); },
      [](const auto& in) { return torch::matmul(torch::gelu(in[0] + in[1], "tanh"), in[2]); });
}

void product_rows() {
  for (const auto& [in, out] :
       {std::pair(768, 2304), std::pair(768, 768), std::pair(768, 3072), std::pair(3072, 768)}) {
    row(
        fmt::format("linear, {} to {}", in, out), {torch::randn({1024, in}), torch::randn({in, out})},
        [](const auto& x) { return linear(x[0], x[1], WeightLayout::InOut); },
        [](const auto& x) { return torch::matmul(x[0], x[1]); });
  }
  for (const auto& [rows, size] : {std::pair(1024, 768), std::pair(128, 784)}) {
    row(
        fmt::format("linear with bias, {} to {}, {} rows", size, size, rows),
        {torch::randn({rows, size}), torch::randn({size, size}), torch::randn({size})},
        [](const auto& x) { return affine(x[0], x[1], x[2]); },
        [](const auto& x) { return torch::linear(x[0], x[1], x[2]); });
  }
  row(
      "linear3, 768 to 3 x 768",
      {torch::randn({1024, 768}), torch::randn({768, 768}), torch::randn({768, 768}), torch::randn({768, 768})},
      [](const auto& x) { return linear3(x[0], x[1], x[2], x[3]); },
      [](const auto& x) {
        return torch::cat({torch::matmul(x[0], x[1].t()), torch::matmul(x[0], x[2].t()), torch::matmul(x[0], x[3].t())},
                          -1);
      });
  const torch::Tensor label = torch::randint(50257, {1024});
  row(
      "last layer and cross entropy, 50257 classes", {torch::randn({1024, 768}), torch::randn({50257, 768}) * 0.02},
      [&](const auto& x) {
        return linear_cross_entropy(x[0], {x[1], {}}, label);
      },
      [&](const auto& x) { return torch::nn::functional::cross_entropy(torch::linear(x[0], x[1]), label); });
  const torch::Tensor masked = torch::randint(30522, {160});  // BERT's: 15 % of the tokens
  row(
      "last layer with bias and cross entropy, 30522 classes",
      {torch::randn({160, 768}), torch::randn({30522, 768}) * 0.02, torch::randn({30522})},
      [&](const auto& x) {
        return linear_cross_entropy(x[0], {x[1], x[2]}, masked);
      },
      [&](const auto& x) { return torch::nn::functional::cross_entropy(torch::linear(x[0], x[1], x[2]), masked); });
}

struct ConvolutionShape {
  int64_t in, out, size, kernel, stride;
};

void convolution_rows() {
  const auto channels_last = [](const torch::Tensor& x) { return x.contiguous(torch::MemoryFormat::ChannelsLast); };
  for (const ConvolutionShape& s :
       {ConvolutionShape{64, 64, 56, 3, 1}, ConvolutionShape{128, 128, 28, 3, 1}, ConvolutionShape{256, 256, 14, 3, 1},
        ConvolutionShape{128, 128, 56, 3, 2}, ConvolutionShape{256, 256, 28, 3, 2},
        ConvolutionShape{512, 512, 14, 3, 2}, ConvolutionShape{512, 512, 7, 3, 1}, ConvolutionShape{64, 256, 56, 1, 1},
        ConvolutionShape{512, 128, 28, 1, 1}, ConvolutionShape{1024, 256, 14, 1, 1},
        ConvolutionShape{256, 512, 56, 1, 2}}) {
    torch::nn::Conv2d conv(
        torch::nn::Conv2dOptions(s.in, s.out, s.kernel).stride(s.stride).padding(s.kernel / 2).bias(false));
    row(
        fmt::format("convolution {}x{}, {} to {}, 8 of {} x {}, stride {}", s.kernel, s.kernel, s.in, s.out, s.size,
                    s.size, s.stride),
        {channels_last(torch::randn({8, s.in, s.size, s.size})),
         channels_last(torch::randn({s.out, s.in, s.kernel, s.kernel}))},
        [&](const auto& in) {
          conv->weight = in[1];
          return convolve(*conv, in[0]);
        },
        [&](const auto& in) { return torch::conv2d(in[0], in[1], {}, s.stride, s.kernel / 2); });
  }
  for (const ConvolutionShape& s : {ConvolutionShape{64, 64, 56, 3, 1}, ConvolutionShape{64, 256, 56, 1, 1}}) {
    torch::nn::Conv2d conv(torch::nn::Conv2dOptions(s.in, s.out, s.kernel).padding(s.kernel / 2).bias(false));
    torch::nn::BatchNorm2d norm(s.in);
    row(
        fmt::format("batch norm, ReLU, convolution {}x{}, {} to {}, 8 of {} x {}", s.kernel, s.kernel, s.in, s.out,
                    s.size, s.size),
        {channels_last(torch::randn({8, s.in, s.size, s.size})),
         channels_last(torch::randn({s.out, s.in, s.kernel, s.kernel}))},
        [&](const auto& in) {
          conv->weight = in[1];
          return norm_relu_convolve(*norm, *conv, in[0]);
        },
        [&](const auto& in) { return torch::conv2d(norm->forward(in[0]).relu_(), in[1], {}, 1, s.kernel / 2); });
  }
  torch::nn::ConvTranspose2d enlarge(torch::nn::ConvTranspose2dOptions(64, 64, 2).stride(2));
  row(
      "transposed convolution 2x2, 64 to 64, 8 of 56 x 56", {channels_last(torch::randn({8, 64, 56, 56}))},
      [&](const auto& in) { return convolve_transposed(*enlarge, in[0]); },
      [&](const auto& in) { return enlarge->forward(in[0]); });
}

void norm_rows() {
  for (const auto& [channels, size] : {std::pair(64, 56), std::pair(256, 56), std::pair(1024, 14)}) {
    torch::nn::BatchNorm2d norm(channels);
    const auto image = [&, c = channels, n = size] {
      return torch::randn({8, c, n, n}).contiguous(torch::MemoryFormat::ChannelsLast);
    };
    row(
        fmt::format("batch norm, residual, ReLU, 8 x {} of {} x {}", channels, size, size), {image(), image()},
        [&](const auto& in) { return norm_act(*norm, in[0], {.residual = in[1], .relu = true}); },
        [&](const auto& in) { return (norm->forward(in[0]) + in[1]).relu_(); });
    row(
        fmt::format("batch norm, ReLU, 8 x {} of {} x {}", channels, size, size), {image()},
        [&](const auto& in) { return norm_act(*norm, in[0], {.residual = {}, .relu = true}); },
        [&](const auto& in) { return norm->forward(in[0]).relu_(); });
  }
}

// A layer of GPT-2, eight times over. libtorch's norm of the gradients is left out: its optimizer does not look whether
// they are finite, ours always does.
void update_rows() {
  const std::string name = "AdamW, 57 million weights in 32 tensors";
  if (name.find(g_wanted) == std::string::npos) return;
  std::vector<torch::Tensor> weights;
  for (int i = 0; i < 8; ++i) {
    for (const auto& [in, out] :
         {std::pair(768, 2304), std::pair(768, 768), std::pair(768, 3072), std::pair(3072, 768)}) {
      weights.push_back(torch::randn({in, out}).requires_grad_(true));
      weights.back().mutable_grad() = torch::randn({in, out});
    }
  }
  NamedTensors named;
  for (const torch::Tensor& weight : weights) named.emplace_back(std::to_string(named.size()), weight);
  FusedOptimizer fused(named, {.name = "AdamW", .weight_decay = 0.01, .clip_norm = {}});
  torch::optim::AdamW plain(weights, torch::optim::AdamWOptions(1e-4).weight_decay(0.01));
  const auto timed = [](const std::function<void()>& step) {
    const Stopwatch watch;
    step();
    return watch.seconds() * 1e3;
  };
  compare(
      name, [&] { return timed([&] { fused.step({.learning_rate = 1e-4}); }); },
      [&] { return timed([&] { plain.step(); }); });
}

}  // namespace
}  // namespace assay

ASSAY_CHOOSE_BLAS_KERNELS

int main(int argc, char** argv) {
  if (argc > 1) assay::g_wanted = argv[1];
  assay::install_caching_allocator();
  const auto threads = assay::configure_threads(1);
  fmt::print("forward and backward, {} threads\n", threads.threads);
  fmt::print("{:<58}{:>10}{:>13}{:>8}\n", "operator", "fused ms", "libtorch ms", "ratio");
  assay::attention_rows();
  assay::element_rows();
  assay::product_rows();
  assay::convolution_rows();
  assay::norm_rows();
  assay::update_rows();
}
