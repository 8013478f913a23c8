#include "config/worker_config.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace assay {

Reader WorkerConfig::section(const std::string& path) const {
  Reader reader(config, "", origins);
  for (const std::string& part : split(path, '.')) reader = reader.section(part);
  return reader;
}

WorkerConfig worker_config_of(const Json& json) {
  Reader reader(json);
  WorkerConfig out;
  out.case_name = reader.get_string("case");
  out.key = reader.get_string("key", out.case_name);
  out.division =
      reader.get_choice("division", {"closed", "open"}, "closed") == "closed" ? Division::Closed : Division::Open;
  out.hash = reader.get_string("hash", "");
  for (const char* section : {"target", "config"}) {
    if (!reader.has(section)) reader.fail(section, "is required");
    reader.section(section);
  }
  out.target = target_of(json["target"]);
  reader.ignore("data");
  out.data = data_info_of(reader.has("data") ? json["data"] : Json::object());
  out.config = json["config"];
  Origins origins;
  Reader places = reader.section("origins");
  for (const std::string& path : places.keys()) origins[path] = places.get_string(path);
  out.origins = std::make_shared<const Origins>(std::move(origins));
  reader.finish();
  return out;
}

WorkerConfig read_worker_config(const std::filesystem::path& path) {
  const Json json = read_json_file(path);
  try {
    return worker_config_of(json);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace assay
