#include "models/resnet/model.h"

#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include "models/resnet/splits.h"
#include "models/resnet/standard.h"
#include "nn/conv_norm.h"
#include "nn/recompute.h"

namespace assay::resnet {

namespace {

// y = relu(x' + norm(conv(relu(norm(conv(x)))))); x' is x, or a 1x1 convolution of it where the shape changes.
class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(int64_t in, int64_t out, int64_t stride) {
    first_ = register_module("first", ConvNorm(ConvNormImpl::Options{in, out, 3, stride}));
    second_ = register_module("second", ConvNorm(ConvNormImpl::Options{out, out, 3, 1}));
    if (stride != 1 || in != out) {
      shortcut_ = register_module("shortcut", ConvNorm(ConvNormImpl::Options{in, out, 1, stride}));
    }
  }

  torch::Tensor forward(const torch::Tensor& x, const TensorParallel& parallel) {
    const torch::Tensor y = first_->forward(parallel.enter(x), {.residual = {}, .relu = true});
    return second_->forward(y, {.residual = shortcut_ ? shortcut_->forward(x) : x, .relu = true}, parallel);
  }

 private:
  ConvNorm first_{nullptr};
  ConvNorm second_{nullptr};
  ConvNorm shortcut_{nullptr};
};
TORCH_MODULE(Block);

class Residual final : public Network {
 public:
  explicit Residual(const Options& o) : recomputes_(o.use_recompute) {
    stem_ = register_module("stem", ConvNorm(ConvNormImpl::Options{o.in_channels, o.width, 3, o.stem_stride}));
    int64_t in = o.width;
    int64_t out = o.width;
    for (size_t stage = 0; stage < o.blocks.size(); ++stage) {
      for (int64_t i = 0; i < o.blocks[stage]; ++i) {
        blocks_->push_back(Block(in, out, i == 0 && stage > 0 ? 2 : 1));
        in = out;
      }
      out *= 2;
    }
    register_module("blocks", blocks_);
    head_ = register_module("head", torch::nn::Linear(in, o.num_classes));
    for (torch::Tensor& parameter : parameters()) {
      if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
    }
  }

  // The stem, then one per block.
  int64_t num_segments() const override { return 1 + static_cast<int64_t>(blocks_->size()); }
  TensorList run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) override {
    if (index == 0) return {stem_->forward(inputs.at(0), {.residual = {}, .relu = true})};
    const std::shared_ptr<torch::nn::Module> block = *(blocks_->begin() + (index - 1));
    const auto run = [this, block](const TensorList& in) {
      return TensorList{block->as<BlockImpl>()->forward(in[0], tensor_parallel())};
    };
    return recomputes_ ? recompute(run, stream) : run(stream);
  }
  torch::Tensor output(const TensorList& stream) override { return head_->forward(stream.at(0).mean({2, 3})); }

  std::vector<std::string> segment_parameters(int64_t index) const override {
    const std::string path = index == 0 ? "stem." : fmt::format("blocks.{}.", index - 1);
    return parameters_under(*this, path, index + 1 == num_segments() ? "head." : "");
  }
  std::vector<WeightSplit> weight_splits() const override {
    std::vector<WeightSplit> splits;
    for (size_t i = 0; i < blocks_->size(); ++i) {
      const std::string at = fmt::format("blocks.{}.", i);
      add_pair(splits, {at + "first.conv.weight", at + "first.norm.", at + "second.conv.weight"});
    }
    return splits;
  }
  void set_tensor_parallel(const TensorParallel& parallel) override {
    refuse_sequences(parallel);
    Network::set_tensor_parallel(parallel);
  }

 private:
  ConvNorm stem_{nullptr};
  torch::nn::ModuleList blocks_;
  torch::nn::Linear head_{nullptr};
  bool recomputes_;
};

int64_t in_range(Reader& section, const std::string& key, int64_t fallback, int64_t max) {
  const int64_t value = section.get_int(key, fallback);
  if (value < 1 || value > max) section.fail(key, "must be from 1 to " + std::to_string(max));
  return value;
}

Options read_options(Reader& section) {
  Options o;
  o.in_channels = in_range(section, "in_channels", o.in_channels, 1024);
  o.num_classes = in_range(section, "num_classes", o.num_classes, 1'000'000);
  o.image_size = in_range(section, "image_size", o.image_size, 4096);
  o.width = in_range(section, "width", o.width, 4096);
  o.blocks = section.get_ints("blocks", o.blocks);
  if (o.blocks.empty() || o.blocks.size() > 8) section.fail("blocks", "must have one number per stage, 1 to 8 stages");
  for (const int64_t count : o.blocks) {
    if (count < 1 || count > 1000) section.fail("blocks", "must have at least one block per stage");
  }
  o.stem_stride = in_range(section, "stem_stride", o.stem_stride, 4);
  o.use_recompute = section.get_bool("use_recompute", o.use_recompute);
  section.finish();
  return o;
}

}  // namespace

std::shared_ptr<Network> ResNet::get_model() { return std::make_shared<Residual>(options_); }

std::vector<InputSpec> ResNet::input_spec() const {
  return {{.name = "image",
           .dtype = torch::kFloat,
           .shape = {-1, options_.in_channels, options_.image_size, options_.image_size}}};
}

std::optional<double> ResNet::flops_per_sample() const {
  // A convolution of a stride s makes an image of ceil(size / s).
  const auto after = [](int64_t size, int64_t stride) { return (size + stride - 1) / stride; };
  const auto conv = [](int64_t in, int64_t out, int64_t kernel, int64_t size) {
    return static_cast<double>(in * out * kernel * kernel) * static_cast<double>(size * size);
  };
  int64_t size = after(options_.image_size, options_.stem_stride);
  int64_t in = options_.width;
  int64_t out = options_.width;
  double sum = conv(options_.in_channels, in, 3, size);
  for (size_t stage = 0; stage < options_.blocks.size(); ++stage) {
    for (int64_t i = 0; i < options_.blocks[stage]; ++i) {
      const bool first = i == 0 && stage > 0;
      if (first) size = after(size, 2);
      sum += conv(in, out, 3, size) + conv(out, out, 3, size) + (first ? conv(in, out, 1, size) : 0);
      in = out;
    }
    out *= 2;
  }
  return kTrainFlops * (sum + static_cast<double>(in * options_.num_classes));
}

Batch ResNet::pretreating_batch(Batch batch) {
  batch.tensors.at(0) = batch.tensors.at(0).contiguous(torch::MemoryFormat::ChannelsLast);
  return batch;
}

ModelEntry entry() {
  const Options defaults;
  return {
      .name = "resnet",
      .summary = "residual networks: a small one for 28x28 images, and the published ones (He et al. 2015)",
      .options = {{"depth", nullptr,
                   "18, 34, 50, 101 or 152: the published network, which has num_classes (1000), image_size (224) and "
                   "use_recompute for further options; null: the small one"},
                  {"in_channels", defaults.in_channels, "channels of an image"},
                  {"num_classes", defaults.num_classes, "outputs"},
                  {"image_size", defaults.image_size, "height and width that the export declares"},
                  {"width", defaults.width, "channels of the first stage; each further stage doubles them"},
                  {"blocks", defaults.blocks, "residual blocks of each stage"},
                  {"stem_stride", defaults.stem_stride, "stride of the first convolution"},
                  {"use_recompute", defaults.use_recompute,
                   "compute activations again in the backward pass instead of keeping them"}},
      .make = [](Reader& section) -> std::unique_ptr<Module> {
        if (section.has("depth")) return std::make_unique<StandardResNet>(read_standard_options(section));
        return std::make_unique<ResNet>(read_options(section));
      }};
}

}  // namespace assay::resnet
