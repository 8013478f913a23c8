// The layers of a case, one on top of the other.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/case.h"
#include "config/data_home.h"
#include "config/derive.h"
#include "config/merge.h"
#include "config/names.h"
#include "config/settings.h"
#include "config/validate.h"
#include "config/yaml.h"

namespace assay {

namespace {

bool covers(const std::string& pattern, const std::string& path) {
  return path == pattern || (path.starts_with(pattern) && path[pattern.size()] == '.');
}

class Resolver {
 public:
  explicit Resolver(const ResolveRequest& request) : request_(request) {}

  ResolvedCase run() {
    load_case();
    if (const auto file = vendor_file()) add_layer(load(*file, kLayerVendor));
    if (request_.plan_file) add_layer(load(*request_.plan_file, kLayerPlan));
    if (request_.plan_values) {
      Value layer = *request_.plan_values;
      take_names(layer);
      add_layer(std::move(layer));
    }
    for (const Setting& setting : request_.sets) {
      Value layer = layer_of(setting, effective_);
      take_names(layer);
      resolve_paths(layer);
      add_layer(std::move(layer));
    }
    check_complete(effective_, *schema_);
    locate_data();
    if (native_) {
      derive_values(effective_, request_.key.world_size());
      locate_plugin();
    }
    return finish();
  }

 private:
  void take_names(Value& layer) const {
    lift_config(layer);
    if (native_) apply_names(layer);
  }

  // Programs of a run work in its folder, so what a user names is resolved where the user stands.
  void resolve_paths(Value& layer) const {
    for (const KeySpec& key : schema_->keys()) {
      Value* value = key.is_path ? layer.find(key.path) : nullptr;
      if (!value || !value->is_string() || value->as_string().empty()) continue;
      const Origin origin = value->origin();
      *value = Value::string(fs::absolute(value->as_string()).lexically_normal().string(), origin);
    }
  }

  Value load(const fs::path& path, const char* layer) const {
    return load_yaml(path, layer, [&](Value& map) { take_names(map); });
  }

  void load_case() {
    const std::string& model = request_.key.model;
    const std::optional<CaseFile> file = find_case(request_.home, model);
    if (!file) {
      const auto known = list_cases(request_.home);
      const std::string list = known.empty() ? "there are none" : "known: " + join(known, ", ");
      throw ConfigError(fmt::format("there is no case '{}' in {}{}; {}", model, (request_.home / "cases").string(),
                                    did_you_mean(model, known), list));
    }
    const fs::path& path = file->path;
    // Which schema holds is decided by the framework, so that is read first.
    const Value raw = load_yaml(path, kLayerCase);
    const Value* framework = raw.child("framework");
    native_ = !framework || (framework->is_string() && framework->as_string() == kNativeFramework);
    schema_ = native_ ? &Schema::native() : &Schema::foreign();
    given_ = load(path, kLayerCase);
    check_layer(given_, *schema_, nullptr);
    forget(given_);
    effective_ = with_defaults(given_, *schema_);
    case_ = effective_;
    check_identity(*file);
    check_complete(effective_, *schema_);
    check_mutable();
  }

  static void forget(Value& given) {
    Value plain = Value::map(given.origin());
    merge_onto(plain, given);
    given = std::move(plain);
  }

  void check_identity(const CaseFile& file) const {
    const fs::path& path = file.path;
    const Value* model = effective_.find("model");
    if (model && model->as_string() != file.model) {
      throw ConfigError(fmt::format("{}: model is {}, but the folder is called '{}'", model->origin().text(),
                                    model->text(), file.model));
    }
    const std::string framework = effective_.find("framework")->as_string();
    const std::string name = framework.substr(0, framework.find('_'));
    if (!request_.key.hardware.empty() && request_.key.framework_name() != name) {
      throw ConfigError(fmt::format("{}: the case is for {}, the key '{}' asks for {}", path.string(), framework,
                                    request_.key.text(), request_.key.framework));
    }
    const bool has_entry = !effective_.find("entry")->items().empty();
    if (native_ == has_entry) {
      throw ConfigError(fmt::format("{}: {}", path.string(),
                                    native_ ? "a native case has no entry; name the framework that the command needs"
                                            : "a case that is not native needs entry: the command as a list"));
    }
  }

  void check_mutable() const {
    for (const Value& item : effective_.find("mutable")->items()) {
      const std::string& path = item.as_string();
      check_path(path, *schema_, case_, item.origin().text());
      const std::string first = path.substr(0, path.find('.'));
      if (is_head_key(first) && path != "data.path") {
        throw ConfigError(
            fmt::format("{}: '{}' cannot be mutable: it says what a result means", item.origin().text(), path));
      }
    }
  }

  bool is_mutable(const std::string& path) const {
    const KeySpec* key = schema_->key(path);
    if (key && key->is_location) return true;
    const Value::List& patterns = case_.find("mutable")->items();
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const Value& pattern) { return covers(pattern.as_string(), path); });
  }

  // vendors/<vendor>/<model>/config_<HW>x<nnodes>x<nproc>.yaml
  fs::path vendor_path(const std::string& vendor) const {
    const CaseKey& key = request_.key;
    return (request_.home / "vendors" / vendor / key.model /
            fmt::format("config_{}x{}x{}.yaml", key.hardware, key.nnodes, key.nproc))
        .lexically_normal();
  }

  std::optional<fs::path> vendor_file() {
    const CaseKey& key = request_.key;
    if (key.hardware.empty() && request_.vendor.empty()) return std::nullopt;
    if (key.hardware.empty()) {
      throw ConfigError(fmt::format("vendor '{}' needs the hardware: write the key as {}:{}:HARDWARE:{}:{}:{}",
                                    request_.vendor, key.model, key.framework, key.nnodes, key.nproc, key.repeat));
    }
    const auto vendors = list_vendors(request_.home);
    std::vector<std::string> candidates = vendors;
    if (!request_.vendor.empty()) {
      if (std::find(vendors.begin(), vendors.end(), request_.vendor) == vendors.end()) {
        throw ConfigError(fmt::format("there is no vendor '{}' in {}{}", request_.vendor,
                                      (request_.home / "vendors").string(), did_you_mean(request_.vendor, vendors)));
      }
      candidates = {request_.vendor};
    }
    std::error_code error;
    std::erase_if(candidates, [&](const std::string& name) { return !fs::exists(vendor_path(name), error); });
    if (candidates.empty()) {
      const std::string vendor = request_.vendor.empty() ? "<vendor>" : request_.vendor;
      throw ConfigError(fmt::format("no vendor configuration for '{}': {} does not exist; an empty file is enough",
                                    key.text(), vendor_path(vendor).string()));
    }
    if (candidates.size() > 1) {
      throw ConfigError(
          fmt::format("'{}' is ambiguous: choose one with --vendor: {}", key.text(), join(candidates, ", ")));
    }
    vendor_ = candidates[0];
    return vendor_path(vendor_);
  }

  // FlagPerf's vendor files name their vendor.
  void check_vendor_name(Value& layer) const {
    const Value* name = layer.child("vendor");
    if (!name || !native_) return;
    if (!name->is_string() || name->as_string() != vendor_) {
      throw ConfigError(fmt::format("{}: vendor is {}, but the vendor of this run is '{}'", name->origin().text(),
                                    name->text(), vendor_));
    }
    layer.erase("vendor");
  }

  void add_layer(Value layer) {
    check_vendor_name(layer);
    if (const Value* list = layer.child("mutable")) {
      throw ConfigError(fmt::format("{}: only the case file says what is mutable", list->origin().text()));
    }
    check_layer(layer, *schema_, &case_);
    Value given = given_;
    merge_onto(given, layer);
    Value effective = with_defaults(given, *schema_);
    const std::string& layer_name = layer.origin().layer;
    for (ConfigChange& change : changes_between(effective_, effective)) {
      // What vanished, or fell back to its default, did so where the layer replaced a section.
      if (change.removed || change.after.origin().layer != layer_name) {
        change.after.set_origin(replaced_at(layer, change.path));
      }
      record(std::move(change), layer_name);
    }
    given_ = std::move(given);
    effective_ = std::move(effective);
  }

  // The place of the innermost part of the path that the layer has.
  static Origin replaced_at(const Value& layer, const std::string& path) {
    Origin place = layer.origin();
    for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
      const Value* node = layer.find(path.substr(0, dot));
      if (!node) break;
      place = node->origin();
    }
    return place;
  }

  void record(ConfigChange change, const std::string& layer) {
    const bool allowed = is_mutable(change.path);
    if (!allowed && layer != kLayerCommandLine && request_.division == Division::Closed) {
      const Value* list = case_.find("mutable");
      const std::string listed = list->origin().file.empty() ? "the case lists nothing under mutable"
                                                             : "see mutable in " + list->origin().text();
      throw ConfigError(
          fmt::format("{}: {} may not be changed from {} to {} in the closed division; {}, or use --division open",
                      change.after.origin().text(), change.path, change.before.text(), change.after.text(), listed));
    }
    overrides_.push_back({change.path, std::move(change.before), std::move(change.after), allowed});
  }

  // A data set without a folder is the one that `assay data prepare` makes, or what its package installed.
  void locate_data() {
    const Value* path = effective_.find("data.path");
    const Value* name = effective_.find("data.name");
    if ((path && !path->is_null()) || !name || !name->is_string() || !is_plain_name(name->as_string())) return;
    const fs::path found = find_data(name->as_string());
    const bool is_prepared = found == data_home() / name->as_string();
    effective_.set_path(
        "data.path",
        Value::string(
            found.string(),
            {kLayerDerived, is_prepared ? "where assay data prepare puts it" : "where its package puts it", 0}));
  }

  // A library is found relative to the vendor's folder, whoever names it; a name without a folder stays a name.
  void locate_plugin() {
    const Value* plugin = effective_.find("Global.plugin");
    if (!plugin || !plugin->is_string()) return;
    const fs::path path = plugin->as_string();
    const bool is_library = path.has_parent_path() || path.extension() == ".so";
    if (!is_library || path.is_absolute()) return;
    const fs::path folder = vendor_.empty() ? request_.home : request_.home / "vendors" / vendor_;
    const Origin origin = plugin->origin();
    effective_.set_path("Global.plugin", Value::string(fs::absolute(folder / path).lexically_normal(), origin));
  }

  ResolvedCase finish() {
    ResolvedCase out;
    out.key = request_.key;
    out.home = request_.home;
    out.vendor = vendor_;
    out.overrides = std::move(overrides_);
    const bool changed =
        std::any_of(out.overrides.begin(), out.overrides.end(), [](const Override& o) { return !o.is_mutable; });
    out.division = changed ? Division::Open : request_.division;
    out.config = Value::map(effective_.origin());
    out.head = Value::map(effective_.origin());
    for (Value::Entry& entry : effective_.entries()) {
      (is_head_key(entry.key) ? out.head : out.config).entries().push_back(std::move(entry));
    }
    const auto text = [&](const char* key) { return out.head.find(key)->as_string(); };
    out.task = text("task");
    out.source = text("source");
    out.licence = text("licence");
    out.framework = text("framework");
    const Value* parameters = out.head.find("parameters");
    if (parameters && !parameters->is_null()) out.num_parameters = parameters->as_int();
    if (out.key.hardware.empty()) out.key.framework = out.framework;
    for (const Value& part : out.head.find("entry")->items()) out.entry.push_back(part.as_string());
    out.target = target_of(out.head.find("target")->to_json());
    const Value* data = out.head.find("data");
    try {
      out.data = data_info_of(data->to_json());
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", data->origin().text(), error.what()));
    }
    return out;
  }

  const ResolveRequest& request_;
  bool native_ = true;
  const Schema* schema_ = nullptr;
  Value given_;      // what the layers so far say
  Value effective_;  // with defaults
  Value case_;       // the case alone, with defaults
  std::string vendor_;
  std::vector<Override> overrides_;
};

}  // namespace

ResolvedCase resolve_case(const ResolveRequest& request) { return Resolver(request).run(); }

}  // namespace assay
