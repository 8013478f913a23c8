#include "models/resnet/standard.h"

#include <fmt/format.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "models/resnet/splits.h"
#include "nn/conv.h"
#include "nn/norm_act.h"
#include "nn/recompute.h"

namespace assay::resnet {

namespace {

struct Architecture {
  int64_t depth;
  std::array<int64_t, 4> blocks;  // of each stage
  bool bottleneck;
};
constexpr Architecture kArchitectures[] = {{18, {2, 2, 2, 2}, false},
                                           {34, {3, 4, 6, 3}, false},
                                           {50, {3, 4, 6, 3}, true},
                                           {101, {3, 4, 23, 3}, true},
                                           {152, {3, 8, 36, 3}, true}};
constexpr int64_t kBottleneckFactor = 4;  // output channels of a bottleneck block to its width

const Architecture& architecture(int64_t depth) {
  for (const Architecture& known : kArchitectures) {
    if (known.depth == depth) return known;
  }
  throw ConfigError(fmt::format("Model.depth {}: must be one of 18, 34, 50, 101, 152", depth));
}

torch::nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
  torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
  return conv;
}

// One residual block: two 3x3 convolutions, or 1x1, 3x3, 1x1 with a bottleneck.
class StandardBlockImpl : public torch::nn::Module {
 public:
  struct Options {
    int64_t in, width, stride;
    bool bottleneck;
  };
  explicit StandardBlockImpl(const Options& o) {
    const int64_t out = o.bottleneck ? o.width * kBottleneckFactor : o.width;
    if (o.bottleneck) {
      add(o.in, o.width, 1, 1);
      add(o.width, o.width, 3, o.stride);
      add(o.width, out, 1, 1);
    } else {
      add(o.in, o.width, 3, o.stride);
      add(o.width, out, 3, 1);
    }
    if (o.stride == 1 && o.in == out) return;
    shortcut_conv_ = convolution(o.in, out, 1, o.stride);
    shortcut_norm_ = torch::nn::BatchNorm2d(out);
    register_module("downsample", torch::nn::Sequential(shortcut_conv_, shortcut_norm_));
  }

  torch::Tensor forward(const torch::Tensor& input, const TensorParallel& parallel) {
    torch::Tensor residual = input;
    if (shortcut_conv_) {
      residual = norm_act(*shortcut_norm_, convolve(*shortcut_conv_, input), {.residual = {}, .relu = false});
    }
    torch::Tensor x = convolve(*convs_[0], parallel.enter(input));
    for (size_t i = 1; i < convs_.size(); ++i) {
      x = norm_relu_convolve(*norms_[i - 1], *convs_[i], x);
      if (i == 1) x = parallel.leave(x);
    }
    return norm_act(*norms_.back(), x, {.residual = residual, .relu = true});
  }

 private:
  void add(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
    const std::string number = std::to_string(convs_.size() + 1);
    convs_.push_back(register_module("conv" + number, convolution(in, out, kernel, stride)));
    norms_.push_back(register_module("bn" + number, torch::nn::BatchNorm2d(out)));
  }
  std::vector<torch::nn::Conv2d> convs_;
  std::vector<torch::nn::BatchNorm2d> norms_;
  torch::nn::Conv2d shortcut_conv_{nullptr};
  torch::nn::BatchNorm2d shortcut_norm_{nullptr};
};
TORCH_MODULE(StandardBlock);

class StandardNetwork final : public Network {
 public:
  explicit StandardNetwork(const StandardOptions& options) : recomputes_(options.use_recompute) {
    const Architecture& plan = architecture(options.depth);
    conv1_ = register_module("conv1", convolution(3, 64, 7, 2));
    bn1_ = register_module("bn1", torch::nn::BatchNorm2d(64));
    int64_t in = 64;
    for (size_t stage = 0; stage < plan.blocks.size(); ++stage) {
      const int64_t width = int64_t{64} << stage;
      torch::nn::Sequential layer;
      for (int64_t i = 0; i < plan.blocks[stage]; ++i) {
        StandardBlock block(StandardBlockImpl::Options{
            .in = in, .width = width, .stride = i == 0 && stage > 0 ? 2 : 1, .bottleneck = plan.bottleneck});
        layer->push_back(block);
        blocks_.push_back(block);
        paths_.push_back(fmt::format("layer{}.{}.", stage + 1, i));
        in = plan.bottleneck ? width * kBottleneckFactor : width;
      }
      register_module("layer" + std::to_string(stage + 1), layer);
    }
    fc_ = register_module("fc", torch::nn::Linear(in, options.num_classes));
    for (torch::Tensor& parameter : parameters()) {
      if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
    }
  }

  // The stem, then one per block.
  int64_t num_segments() const override { return 1 + static_cast<int64_t>(blocks_.size()); }
  TensorList run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) override {
    if (index > 0) {
      auto run = [this, block = blocks_[static_cast<size_t>(index) - 1]](const TensorList& in) mutable {
        return TensorList{block->forward(in[0], tensor_parallel())};
      };
      return recomputes_ ? recompute(run, stream) : run(stream);
    }
    const torch::Tensor x = norm_act(*bn1_, conv1_->forward(inputs.at(0)), {.residual = {}, .relu = true});
    return {torch::nn::functional::max_pool2d(x, torch::nn::functional::MaxPool2dFuncOptions(3).stride(2).padding(1))};
  }
  torch::Tensor output(const TensorList& stream) override { return fc_->forward(stream.at(0).mean({2, 3})); }

  std::vector<std::string> segment_parameters(int64_t index) const override {
    if (index > 0) {
      return parameters_under(*this, paths_[static_cast<size_t>(index) - 1], index + 1 == num_segments() ? "fc." : "");
    }
    return parameters_under(*this, "conv1.", "bn1.");
  }
  std::vector<WeightSplit> weight_splits() const override {
    std::vector<WeightSplit> splits;
    for (const std::string& at : paths_) add_pair(splits, {at + "conv1.weight", at + "bn1.", at + "conv2.weight"});
    return splits;
  }
  void set_tensor_parallel(const TensorParallel& parallel) override {
    refuse_sequences(parallel);
    Network::set_tensor_parallel(parallel);
  }

 private:
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  std::vector<StandardBlock> blocks_;
  std::vector<std::string> paths_;  // of the blocks' parameters
  torch::nn::Linear fc_{nullptr};
  bool recomputes_;
};

// Of one image, in the order of the network.
double multiply_adds(const StandardOptions& options) {
  // A stride of 2 makes an image of ceil(size / 2).
  const auto halved = [](int64_t size) { return (size + 1) / 2; };
  const auto conv = [](int64_t in, int64_t out, int64_t kernel, int64_t size) {
    return static_cast<double>(in * out * kernel * kernel) * static_cast<double>(size * size);
  };
  const Architecture& plan = architecture(options.depth);
  int64_t size = halved(options.image_size);
  double sum = conv(3, 64, 7, size);
  size = halved(size);  // the pooling behind it
  int64_t in = 64;
  for (size_t stage = 0; stage < plan.blocks.size(); ++stage) {
    const int64_t width = int64_t{64} << stage;
    const int64_t out = plan.bottleneck ? width * kBottleneckFactor : width;
    for (int64_t i = 0; i < plan.blocks[stage]; ++i) {
      const bool strided = i == 0 && stage > 0;
      const int64_t before = size;
      if (strided) size = halved(size);
      sum += plan.bottleneck ? conv(in, width, 1, before) + conv(width, width, 3, size) + conv(width, out, 1, size)
                             : conv(in, width, 3, size) + conv(width, out, 3, size);
      if (strided || in != out) sum += conv(in, out, 1, size);
      in = out;
    }
  }
  return sum + static_cast<double>(in * options.num_classes);
}

}  // namespace

StandardOptions read_standard_options(Reader& section) {
  StandardOptions o;
  const auto in_range = [&](const char* key, int64_t fallback, int64_t min, int64_t max) {
    const int64_t value = section.get_int(key, fallback);
    if (value < min || value > max) section.fail(key, fmt::format("must be from {} to {}", min, max));
    return value;
  };
  o.depth = section.get_int("depth", o.depth);
  const bool published = std::any_of(std::begin(kArchitectures), std::end(kArchitectures),
                                     [&](const Architecture& known) { return known.depth == o.depth; });
  if (!published) section.fail("depth", "must be one of 18, 34, 50, 101, 152");
  o.num_classes = in_range("num_classes", o.num_classes, 1, 1'000'000);
  o.image_size = in_range("image_size", o.image_size, 32, 4096);
  o.use_recompute = section.get_bool("use_recompute", o.use_recompute);
  section.finish();
  return o;
}

StandardResNet::StandardResNet(const StandardOptions& options) : options_(options) { architecture(options.depth); }

std::shared_ptr<Network> StandardResNet::get_model() { return std::make_shared<StandardNetwork>(options_); }

std::vector<InputSpec> StandardResNet::input_spec() const {
  return {{.name = "image", .dtype = torch::kFloat, .shape = {-1, 3, options_.image_size, options_.image_size}}};
}

std::optional<double> StandardResNet::flops_per_sample() const { return kTrainFlops * multiply_adds(options_); }

Batch StandardResNet::pretreating_batch(Batch batch) {
  batch.tensors.at(0) = batch.tensors.at(0).contiguous(torch::MemoryFormat::ChannelsLast);
  return batch;
}

TensorsByName StandardResNet::from_published(TensorsByName tensors) const {
  for (const auto& item : model().named_buffers()) {
    if (item.key().ends_with(".num_batches_tracked")) tensors.try_emplace(item.key(), item.value());
  }
  return tensors;
}

}  // namespace assay::resnet
