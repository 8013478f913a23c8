// Every model of the product, by name. Adding one is one line in registry.cpp (docs/extend/add-a-model.md).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "config/reader.h"
#include "engine/module.h"

namespace assay {

struct OptionDoc {
  std::string name;
  Json fallback;
  std::string doc;
};

struct ModelEntry {
  std::string name;
  std::string summary;  // one sentence
  std::vector<OptionDoc> options;
  // Reads the section Model (except its name), checks it and finishes the reader. The module is not yet initialised.
  std::function<std::unique_ptr<Module>(Reader& section)> make;
};

const std::vector<ModelEntry>& models();

// The module that the section names, initialised: network and loss exist. Throws ConfigError with the nearest name.
std::unique_ptr<Module> make_module(Reader section);

int64_t num_parameters(const Module& module);

// One object a model: name, summary, options with defaults, number of parameters with the defaults.
Json describe_models();

}  // namespace assay
