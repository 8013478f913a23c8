#include "models/simplenet/model.h"

#include <torch/nn/modules/linear.h>

#include <fmt/format.h>

#include "base/error.h"
#include "nn/linear.h"

namespace assay::simplenet {

namespace {

constexpr int kLayers = 5;

class FiveLayers final : public Network {
 public:
  explicit FiveLayers(const Options& o) : image_size_(o.image_size), relu_(o.relu) {
    for (int i = 1; i <= kLayers; ++i) {
      const int64_t out = i == kLayers ? o.num_classes : o.image_size;
      layers_.push_back(register_module(fmt::format("fc{}", i), torch::nn::Linear(o.image_size, out)));
    }
  }

  torch::Tensor forward(const TensorList& inputs) override {
    torch::Tensor x = inputs.at(0).flatten(1);
    ASSAY_CHECK(x.size(1) == image_size_, fmt::format("images of {} numbers, not {}", image_size_, x.size(1)));
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (relu_ && i > 0) x = x.relu();
      x = affine(x, layers_[i]->weight, layers_[i]->bias);
    }
    return x;
  }

 private:
  int64_t image_size_;
  bool relu_;
  std::vector<torch::nn::Linear> layers_;
};

Options read_options(Reader& section) {
  Options options;
  options.image_size = section.get_int("image_size", options.image_size);
  if (options.image_size < 1 || options.image_size > 16384) section.fail("image_size", "must be from 1 to 16384");
  options.num_classes = section.get_int("num_classes", options.num_classes);
  if (options.num_classes < 2 || options.num_classes > 1'000'000) {
    section.fail("num_classes", "must be from 2 to 1000000");
  }
  options.relu = section.get_choice("activation", {"none", "relu"}, "none") == "relu";
  section.finish();
  return options;
}

}  // namespace

std::shared_ptr<Network> SimpleNet::get_model() { return std::make_shared<FiveLayers>(options_); }

std::vector<InputSpec> SimpleNet::input_spec() const {
  return {{.name = "image", .dtype = torch::kFloat, .shape = {-1, options_.image_size}}};
}

std::optional<double> SimpleNet::flops_per_sample() const {
  const auto width = static_cast<double>(options_.image_size);
  return kTrainFlops * ((kLayers - 1) * width * width + width * static_cast<double>(options_.num_classes));
}

ModelEntry entry() {
  const Options defaults;
  return {.name = "simplenet",
          .summary = "five linear layers, the example of FleetX's guide",
          .options = {{"image_size", defaults.image_size, "numbers an image has, and the width of fc1 to fc4"},
                      {"num_classes", defaults.num_classes, "outputs"},
                      {"activation", "none", "between the layers: none, as in the guide, or relu"}},
          .make = [](Reader& section) { return std::make_unique<SimpleNet>(read_options(section)); }};
}

}  // namespace assay::simplenet
