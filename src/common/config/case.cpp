#include "config/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "config/merge.h"
#include "config/reader.h"
#include "config/schema.h"

namespace assay {

std::string_view division_name(Division division) { return division == Division::Closed ? "closed" : "open"; }

Division division_of(std::string_view name) {
  if (name == "closed") return Division::Closed;
  if (name == "open") return Division::Open;
  throw UsageError(fmt::format("the division is closed or open, not '{}'", name));
}

bool Target::reached_by(double measured) const {
  return goal == Goal::Maximize ? measured >= value : measured <= value;
}

Json to_json(const Target& target) {
  return {{"metric", target.metric},
          {"value", target.value},
          {"goal", target.goal == Goal::Maximize ? "maximize" : "minimize"}};
}

Target target_of(const Json& json) {
  Reader reader(json, "target");
  Target target;
  target.metric = reader.get_string("metric");
  target.value = reader.get_double("value");
  const std::string goal = reader.get_choice("goal", {"maximize", "minimize"}, "maximize");
  target.goal = goal == "maximize" ? Goal::Maximize : Goal::Minimize;
  reader.finish();
  return target;
}

Json to_json(const DataInfo& data) {
  Json json = {{"name", data.name}, {"layout", data.layout}, {"path", nullptr}, {"sha256", Json::object()}};
  if (data.path) json["path"] = data.path->string();
  for (const auto& [file, hash] : data.sha256) json["sha256"][file] = hash;
  return json;
}

DataInfo data_info_of(const Json& json) {
  Reader reader(json, "data");
  DataInfo data;
  data.name = reader.get_string("name", "");
  data.layout = reader.get_string("layout", "");
  if (reader.has("path")) data.path = reader.get_string("path");
  reader.ignore("path");
  Reader hashes = reader.section("sha256");
  for (const std::string& file : hashes.keys()) {
    const std::string hash = lower(hashes.get_string(file));
    if (hash.size() != 64 || hash.find_first_not_of("0123456789abcdef") != std::string::npos) {
      hashes.fail(file, "must be 64 hexadecimal digits");
    }
    data.sha256[file] = hash;
  }
  reader.finish();
  return data;
}

std::string ResolvedCase::place(const Origin& origin) const {
  std::string text = origin.text();
  const std::string prefix = (home / "").lexically_normal().string();
  for (size_t at = text.find(prefix); at != std::string::npos && prefix.size() > 2; at = text.find(prefix, at)) {
    text.erase(at, prefix.size());
  }
  return text;
}

Json ResolvedCase::config_json() const { return config.to_json(); }

Json ResolvedCase::describe() const {
  Json json = {
      {"case", key.text()}, {"division", division_name(division)}, {"vendor", vendor.empty() ? Json() : Json(vendor)},
      {"hash", hash()},     {"overrides", Json::array()},          {"values", Json::array()}};
  for (const Override& change : overrides) {
    json["overrides"].push_back({{"key", change.path},
                                 {"before", change.before.to_json()},
                                 {"after", change.after.to_json()},
                                 {"layer", change.after.origin().layer},
                                 {"place", place(change.after.origin())},
                                 {"mutable", change.is_mutable}});
  }
  for (const Value* tree : {&head, &config}) {
    for (const Leaf& leaf : leaves_of(*tree)) {
      json["values"].push_back({{"key", leaf.path},
                                {"value", leaf.value->to_json()},
                                {"layer", leaf.value->origin().layer},
                                {"place", place(leaf.value->origin())}});
    }
  }
  return json;
}

Json ResolvedCase::worker_json() const {
  Json json = {{"case", key.model},       {"key", key.text()},         {"division", division_name(division)},
               {"hash", hash()},          {"target", to_json(target)}, {"data", to_json(data)},
               {"config", config_json()}, {"origins", Json::object()}};
  for (const Leaf& leaf : leaves_of(config)) json["origins"][leaf.path] = place(leaf.value->origin());
  return json;
}

std::string ResolvedCase::hash() const {
  Value measured = config;
  const Schema& schema = is_native() ? Schema::native() : Schema::foreign();
  for (const KeySpec& spec : schema.keys()) {
    if (spec.is_location && measured.find(spec.path)) measured.set_path(spec.path, Value());
  }
  Json files = Json::object();
  for (const auto& [file, sha] : data.sha256) files[file] = sha;
  const Json all = {{"model", key.model},
                    {"framework", framework},
                    {"entry", entry},
                    {"target", to_json(target)},
                    {"data", {{"name", data.name}, {"layout", data.layout}, {"sha256", files}}},
                    {"config", measured.to_json()}};
  // Sorted keys: the order of keys in a file is not part of what is measured.
  return sha256(nlohmann::json(all).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

namespace {

constexpr char kCaseStem[] = "case";

std::vector<std::string> folders_in(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory(error)) names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::optional<CaseFile> find_case(const fs::path& home, const std::string& name) {
  if (!is_plain_name(name)) return std::nullopt;
  const auto file = [&](const std::string& model, const std::string& stem) -> std::optional<CaseFile> {
    const fs::path path = (home / "cases" / model / (stem + ".yaml")).lexically_normal();
    std::error_code error;
    if (!fs::exists(path, error)) return std::nullopt;
    return CaseFile{path, model};
  };
  if (auto found = file(name, kCaseStem)) return found;
  // Names of models may have hyphens too, so every one may be where the size begins.
  for (size_t at = name.find('-'); at != std::string::npos; at = name.find('-', at + 1)) {
    const std::string model = name.substr(0, at), size = name.substr(at + 1);
    if (!is_plain_name(size) || size == kCaseStem || !file(model, kCaseStem)) continue;
    if (auto found = file(model, size)) return found;
  }
  return std::nullopt;
}

std::vector<std::string> list_cases(const fs::path& home) {
  std::vector<std::string> names;
  for (const std::string& model : folders_in(home / "cases")) {
    if (!find_case(home, model)) continue;
    names.push_back(model);
    std::vector<std::string> sizes;
    std::error_code error;
    for (fs::directory_iterator it(home / "cases" / model, error), end; !error && it != end; it.increment(error)) {
      const std::string size = it->path().stem().string();
      if (it->path().extension() != ".yaml" || size == kCaseStem || !is_plain_name(size)) continue;
      sizes.push_back(model + "-" + size);
    }
    std::sort(sizes.begin(), sizes.end());
    names.insert(names.end(), sizes.begin(), sizes.end());
  }
  return names;
}

std::vector<std::string> list_vendors(const fs::path& home) { return folders_in(home / "vendors"); }

}  // namespace assay
