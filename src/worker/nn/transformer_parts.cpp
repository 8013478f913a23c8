#include "nn/transformer_parts.h"

#include <memory>

namespace assay {

namespace {

thread_local int num_undrawn_weights = 0;

torch::TensorOptions new_weights() { return torch::device(num_undrawn_weights > 0 ? torch::kMeta : torch::kCPU); }

}  // namespace

std::vector<std::string> with_bias(const std::vector<std::string>& layers) {
  std::vector<std::string> names;
  for (const std::string& layer : layers) names.insert(names.end(), {layer + ".weight", layer + ".bias"});
  return names;
}

UndrawnWeights::UndrawnWeights() { ++num_undrawn_weights; }
UndrawnWeights::~UndrawnWeights() { --num_undrawn_weights; }

// The module that a dotted path leads to; what is missing on the way is made.
torch::nn::Module& PartMaker::module_of(const std::string& path) {
  torch::nn::Module* module = &network_;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    const auto children = module->named_children();
    const auto* found = children.find(name);
    module = found ? found->get() : module->register_module(name, std::make_shared<torch::nn::Module>(name)).get();
    begin = end + 1;
  }
  return *module;
}

torch::Tensor PartMaker::weight(const std::string& path, at::IntArrayRef shape, double deviation) {
  torch::Tensor values = torch::empty(shape, new_weights());
  if (num_undrawn_weights == 0) values.normal_(0, deviation);
  return module_of(path).register_parameter("weight", values);
}

torch::Tensor PartMaker::ones(const std::string& path, int64_t width) {
  return module_of(path).register_parameter("weight", torch::ones({width}, new_weights()));
}

torch::Tensor PartMaker::zeros(const std::string& path, int64_t width) {
  const size_t dot = path.rfind('.');
  const std::string owner = dot == std::string::npos ? "" : path.substr(0, dot);
  return module_of(owner).register_parameter(path.substr(dot + 1), torch::zeros({width}, new_weights()));
}

Affine PartMaker::affine(const std::string& path, const AffineSize& size, WeightLayout layout, double deviation) {
  const bool out_first = layout == WeightLayout::OutIn;
  const torch::Tensor created =
      weight(path, {out_first ? size.out : size.in, out_first ? size.in : size.out}, deviation);
  return {created, zeros(path + ".bias", size.out), layout};
}

LayerNormWeights PartMaker::norm(const std::string& path, int64_t width, double epsilon) {
  const torch::Tensor created = ones(path, width);
  return {created, zeros(path + ".bias", width), epsilon};
}

}  // namespace assay
