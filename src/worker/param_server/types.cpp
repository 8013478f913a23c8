#include "param_server/types.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "param_server/update.h"

namespace assay::ps {

namespace {

const std::vector<std::string>& mode_names() {
  static const std::vector<std::string> kNames = {"sync", "async", "geo"};
  return kNames;
}

const std::vector<std::string>& init_names() {
  static const std::vector<std::string> kNames = {"given", "zero", "uniform", "normal"};
  return kNames;
}

size_t index_in(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

Mode mode_of(const std::string& name) {
  const size_t index = index_in(mode_names(), name);
  if (index == mode_names().size()) {
    throw ConfigError(fmt::format("Distributed.ps.mode '{}': unknown{}; known are {}", name,
                                  did_you_mean(name, mode_names()), join(mode_names(), ", ")));
  }
  return static_cast<Mode>(index);
}

std::string name_of(Mode mode) { return mode_names().at(static_cast<size_t>(mode)); }

size_t size_of(Element element) { return element == Element::F64 ? sizeof(double) : sizeof(float); }

void check_spec(const TableSpec& spec) {
  const auto fail = [&](const std::string& what) {
    throw ConfigError(fmt::format("table '{}' of the parameter servers: {}", valid_utf8(spec.name), what));
  };
  if (spec.name.empty() || spec.name.size() > kMaxNameSize) fail("its name must have 1 to 256 bytes");
  if (valid_utf8(spec.name) != spec.name) fail("its name is not UTF-8");
  if (spec.width < 1 || spec.width > kMaxWidth) fail(fmt::format("a width of {}", spec.width));
  if (spec.element != Element::F32 && spec.element != Element::F64) fail("neither float32 nor float64");
  if (static_cast<size_t>(spec.init.kind) >= init_names().size()) fail("an unknown rule for first values");
  if (!std::isfinite(spec.init.scale) || spec.init.scale < 0) fail("the scale of first values must be at least 0");
  const UpdateOptions& update = spec.update;
  const std::vector<std::string>& known = update_names();
  if (index_in(known, update.name) == known.size()) {
    fail(fmt::format("servers cannot update by '{}'{}; they know {}", valid_utf8(update.name),
                     did_you_mean(update.name, known), join(known, ", ")));
  }
  for (const double value : {update.weight_decay, update.momentum, update.beta1, update.beta2, update.epsilon}) {
    if (!std::isfinite(value)) fail("an option of its optimizer is not a number");
  }
}

Json to_json(const TableSpec& spec) {
  return {{"name", spec.name},
          {"width", spec.width},
          {"element", spec.element == Element::F64 ? "F64" : "F32"},
          {"init", init_names().at(static_cast<size_t>(spec.init.kind))},
          {"scale", spec.init.scale},
          {"seed", spec.init.seed},
          {"update", spec.update.name},
          {"weight_decay", spec.update.weight_decay},
          {"momentum", spec.update.momentum},
          {"beta1", spec.update.beta1},
          {"beta2", spec.update.beta2},
          {"epsilon", spec.update.epsilon}};
}

TableSpec spec_of(const Json& value, const std::string& where) {
  try {
    const size_t init = index_in(init_names(), value.at("init").get<std::string>());
    TableSpec spec{.name = value.at("name").get<std::string>(),
                   .width = value.at("width").get<int64_t>(),
                   .element = value.at("element").get<std::string>() == "F64" ? Element::F64 : Element::F32,
                   .init = {.kind = static_cast<InitRule::Kind>(init),
                            .scale = value.at("scale").get<double>(),
                            .seed = value.at("seed").get<uint64_t>()},
                   .update = {.name = value.at("update").get<std::string>(),
                              .weight_decay = value.at("weight_decay").get<double>(),
                              .momentum = value.at("momentum").get<double>(),
                              .beta1 = value.at("beta1").get<double>(),
                              .beta2 = value.at("beta2").get<double>(),
                              .epsilon = value.at("epsilon").get<double>()}};
    check_spec(spec);
    return spec;
  } catch (const Json::exception&) {
    throw DataError(where + ": the description of a table lacks an entry or has one of the wrong type");
  } catch (const ConfigError& error) {
    throw DataError(where + ": " + error.what());
  }
}

}  // namespace assay::ps
