// Parameters of transformer layers, made under the dotted names that published checkpoints give them. The modules
// between the dots hold nothing else; what is done with the parameters is the operators' business.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "nn/linear.h"
#include "nn/residual_norm.h"

namespace assay {

// A linear layer, `PATH.weight` and `PATH.bias`.
struct Affine {
  torch::Tensor weight;
  torch::Tensor bias;  // [out]
  WeightLayout layout = WeightLayout::OutIn;
};
struct AffineSize {
  int64_t in = 1;
  int64_t out = 1;
};

// The names of the weight and the bias of each of these layers.
std::vector<std::string> with_bias(const std::vector<std::string>& layers);

// While one lives, parts are made without memory (libtorch's device `meta`): for whoever asks only how many numbers
// there are, which for 175 billion of them would not fit.
class UndrawnWeights {
 public:
  UndrawnWeights();
  ~UndrawnWeights();
  UndrawnWeights(const UndrawnWeights&) = delete;
  UndrawnWeights& operator=(const UndrawnWeights&) = delete;
};

// Makes parameters under a network. New weights are normal with the deviation given, biases 0, norms 1 and 0.
class PartMaker {
 public:
  explicit PartMaker(torch::nn::Module& network) : network_(network) {}
  Affine affine(const std::string& path, const AffineSize& size, WeightLayout layout, double deviation);
  LayerNormWeights norm(const std::string& path, int64_t width, double epsilon);
  torch::Tensor weight(const std::string& path, at::IntArrayRef shape, double deviation);  // `PATH.weight`
  torch::Tensor ones(const std::string& path, int64_t width);                              // `PATH.weight`
  torch::Tensor zeros(const std::string& path, int64_t width);                             // a parameter named PATH

 private:
  torch::nn::Module& module_of(const std::string& path);
  torch::nn::Module& network_;
};

}  // namespace assay
