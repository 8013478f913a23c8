#include "preflight/preflight_file.h"

#include <fmt/format.h>

#include "base/error.h"

namespace assay {

namespace {

constexpr const char* kSchema = "assay/preflight-v1";

}  // namespace

Json preflight_json(const PlannedRun& plan) {
  Json uses = Json::object();
  for (const auto& [step, use] : plan.uses) uses[step] = {{"data", use.data}, {"versions", use.versions}};
  Json data = Json::object();
  for (const auto& [folder, files] : plan.data) data[folder] = files.empty() ? Json::object() : Json(files);
  return {{"schema", kSchema},
          {"hardware", plan.hardware},
          {"data", data},
          {"versions", plan.versions.empty() ? Json::object() : Json(plan.versions)},
          {"uses", uses}};
}

PlannedRun planned_run_of(Plan plan, const Json& preflight, const std::string& where) {
  try {
    if (preflight.at("schema") != kSchema) {
      throw DataError(fmt::format("{}: schema {} is not {}", where, to_line(preflight.at("schema")), kSchema));
    }
    PlannedRun out;
    out.plan = std::move(plan);
    preflight.at("hardware").get_to(out.hardware);
    preflight.at("data").get_to(out.data);
    preflight.at("versions").get_to(out.versions);
    for (const auto& [step, use] : preflight.at("uses").items()) {
      out.uses[step] = {.data = use.at("data").get<std::string>(),
                        .versions = use.at("versions").get<std::vector<std::string>>()};
    }
    return out;
  } catch (const Json::exception&) {
    throw DataError(fmt::format("{}: a field is missing or of the wrong type", where));
  }
}

PlannedRun rest_of(const PlannedRun& whole, const std::set<std::string>& to_begin,
                   const std::set<std::string>& running) {
  PlannedRun rest;
  rest.plan.title = whole.plan.title;
  rest.plan.site = whole.plan.site;
  rest.hardware = whole.hardware;
  for (const Step& step : whole.plan.steps) {
    if (to_begin.contains(step.name) || running.contains(step.name)) rest.plan.steps.push_back(step);
  }
  for (const std::string& name : to_begin) {
    const auto use = whole.uses.find(name);
    if (use == whole.uses.end()) continue;
    rest.uses.insert(*use);
    if (const auto data = whole.data.find(use->second.data); data != whole.data.end()) rest.data.insert(*data);
    for (const std::string& version : use->second.versions) {
      if (const auto command = whole.versions.find(version); command != whole.versions.end()) {
        rest.versions.insert(*command);
      }
    }
  }
  return rest;
}

}  // namespace assay
