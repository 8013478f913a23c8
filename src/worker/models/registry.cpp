#include "models/registry.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "models/bert/model.h"
#include "models/deepfm/model.h"
#include "models/glm/model.h"
#include "models/gpt/model.h"
#include "models/llama/model.h"
#include "models/ocr_det/model.h"
#include "models/resnet/model.h"
#include "models/simplenet/model.h"
#include "nn/transformer_parts.h"

namespace assay {

const std::vector<ModelEntry>& models() {
  static const std::vector<ModelEntry> kModels = {
      bert::entry(),  deepfm::entry(),  glm::entry(),    gpt::entry(),
      llama::entry(), ocr_det::entry(), resnet::entry(), simplenet::entry(),
  };
  return kModels;
}

std::unique_ptr<Module> make_module(Reader section) {
  const std::string name = section.get_string("name");
  std::vector<std::string> names;
  for (const ModelEntry& entry : models()) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    std::unique_ptr<Module> module = entry.make(section);
    module->init();
    return module;
  }
  section.fail("name", fmt::format("is not a model of this worker{}; known are {}", did_you_mean(name, names),
                                   join(names, ", ")));
}

int64_t num_parameters(const Module& module) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : module.model().parameters()) count += parameter.numel();
  return count;
}

Json describe_models() {
  const UndrawnWeights only_sizes;
  Json list = Json::array();
  for (const ModelEntry& entry : models()) {
    Json options = Json::array();
    for (const OptionDoc& option : entry.options) {
      options.push_back({{"name", option.name}, {"default", option.fallback}, {"doc", option.doc}});
    }
    const Json section = {{"name", entry.name}};
    const auto module = make_module(Reader(section, "Model"));
    list.push_back({{"name", entry.name},
                    {"summary", entry.summary},
                    {"num_parameters", num_parameters(*module)},
                    {"options", options}});
  }
  return list;
}

}  // namespace assay
