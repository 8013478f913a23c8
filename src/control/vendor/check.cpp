#include "vendor/check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "config/case.h"
#include "vendor/config_name.h"
#include "vendor/environment_file.h"
#include "vendor/vendor.h"

namespace assay {

namespace {

std::vector<fs::path> entries_in(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

class VendorChecker {
 public:
  VendorChecker(const fs::path& home, const std::string& vendor, const fs::path& plugins)
      : home_(home), vendor_(vendor), plugins_(plugins), folder_((home / "vendors" / vendor).lexically_normal()) {}

  std::vector<VendorCheck> run() {
    check_file();
    check_setup();
    check_plugin();
    for (const fs::path& path : entries_in(folder_)) {
      std::error_code error;
      const std::string name = path.filename().string();
      if (fs::is_directory(path, error) && name != "plugin" && name != "lib") check_case(path);
    }
    return std::move(checks_);
  }

 private:
  void add(std::string check, std::vector<std::string> problems) {
    const bool passed = problems.empty();
    checks_.push_back({vendor_, std::move(check), passed, std::move(problems)});
  }

  std::string shown(const fs::path& path) const { return path.lexically_relative(home_).generic_string(); }

  // Messages name files relative to home: it is the same everywhere.
  std::string plain(std::string message) const {
    const std::string prefix = (home_ / "").lexically_normal().string();
    for (size_t at = message.find(prefix); at != std::string::npos && prefix.size() > 2;
         at = message.find(prefix, at)) {
      message.erase(at, prefix.size());
    }
    return message;
  }

  void check_file() {
    try {
      info_ = read_vendor(home_, vendor_);
      if (info_->has_file) {
        add("vendor.yaml", {});
      } else {
        add("vendor.yaml", {fmt::format("{} is missing: name and hardware", shown(folder_ / "vendor.yaml"))});
      }
      if (!info_->environment.empty() || !info_->warnings.empty()) {
        std::vector<std::string> warnings;
        for (const std::string& warning : info_->warnings) warnings.push_back(plain(warning));
        checks_.push_back({vendor_, "environment", true, std::move(warnings)});
      }
    } catch (const ConfigError& error) {
      add("vendor.yaml", {plain(error.what())});
    }
  }

  void check_setup() {
    if (!info_ || !info_->setup) return;
    const fs::path& path = *info_->setup;
    if (::access(path.c_str(), X_OK) == 0) return add("setup", {});
    add("setup", {fmt::format("{} is not executable: chmod +x", shown(path))});
  }

  void check_plugin() {
    std::error_code error;
    if (!fs::is_directory(folder_ / "plugin", error)) return;
    const auto sources = entries_in(folder_ / "plugin");
    const bool has_source =
        std::any_of(sources.begin(), sources.end(), [](const fs::path& path) { return path.extension() == ".cpp"; });
    if (!has_source) return add("plugin", {fmt::format("{} has no .cpp file", shown(folder_ / "plugin"))});
    if (fs::exists(plugins_ / (vendor_ + ".so"), error)) return add("plugin", {});
    add("plugin", {fmt::format("{} is not built: plugins/{}.so is missing; cmake --build --preset release builds it",
                               shown(folder_ / "plugin"), vendor_)});
  }

  void check_case(const fs::path& folder) {
    const std::string name = folder.filename().string();
    const bool exists = find_case(home_, name).has_value();
    size_t num_configs = 0;
    for (const fs::path& path : entries_in(folder)) {
      const std::string file = path.filename().string();
      if (!file.starts_with("config")) continue;
      ++num_configs;
      const auto parsed = path.extension() == ".yaml" ? parse_config_name(path.stem().string()) : std::nullopt;
      std::vector<std::string> problems;
      if (!parsed) {
        problems.push_back(fmt::format("{}: the name is not config_<hardware>x<nnodes>x<nproc>.yaml", shown(path)));
      } else if (exists) {
        problems = config_problems(name, *parsed, path);
      }
      if (exists || !parsed) add(fmt::format("{}/{}", name, path.stem().string()), std::move(problems));
    }
    if (!exists) {
      add(name,
          {fmt::format("{}: there is no case '{}'{}", shown(folder), name, did_you_mean(name, list_cases(home_)))});
    } else if (num_configs == 0) {
      add(name, {fmt::format("{} has no config_<hardware>x<nnodes>x<nproc>.yaml", shown(folder))});
    }
    check_case_environment(folder, name);
  }

  void check_case_environment(const fs::path& folder, const std::string& name) {
    std::error_code error;
    if (!fs::exists(folder / "environment", error)) return;
    VendorCheck check{vendor_, name + "/environment", true, {}};
    try {
      for (const std::string& warning : read_environment_file(folder / "environment").warnings) {
        check.problems.push_back(plain(warning));
      }
    } catch (const ConfigError& failure) {
      check.passed = false;
      check.problems = {plain(failure.what())};
    }
    checks_.push_back(std::move(check));
  }

  std::vector<std::string> config_problems(const std::string& model, const ConfigName& config, const fs::path& path) {
    std::vector<std::string> problems;
    if (info_ && info_->has_file && !info_->find(config.hardware)) {
      std::vector<std::string> known;
      for (const auto& [name, hardware] : info_->hardware) known.push_back(name);
      problems.push_back(fmt::format("{}: vendor.yaml has no hardware '{}'{}", shown(path), config.hardware,
                                     did_you_mean(config.hardware, known)));
    }
    try {
      ResolveRequest request{.home = home_, .key = CaseKey::parse(model)};
      request.key.framework = resolve_case(request).framework;
      request.key.hardware = config.hardware;
      request.key.nnodes = config.nnodes;
      request.key.nproc = config.nproc;
      request.vendor = vendor_;
      // Everything that the closed division refuses at once: it stops at the first.
      request.division = Division::Open;
      const ResolvedCase resolved = resolve_case(request);
      for (const Override& change : resolved.overrides) {
        if (change.is_mutable) continue;
        problems.push_back(fmt::format("{}: {} is not mutable, changed from {} to {}: refused in the closed division",
                                       resolved.place(change.after.origin()), change.path, change.before.text(),
                                       change.after.text()));
      }
      check_library(resolved, problems);
    } catch (const Error& error) {
      problems.push_back(plain(error.what()));
    }
    return problems;
  }

  // A plugin that a configuration names: a library that is there, or the name of one that is built.
  void check_library(const ResolvedCase& resolved, std::vector<std::string>& problems) const {
    const Value* plugin = resolved.config.find("Global.plugin");
    if (!resolved.is_native() || !plugin || !plugin->is_string()) return;
    const fs::path path = plugin->as_string();
    std::error_code error;
    const bool is_library = path.has_parent_path() || path.extension() == ".so";
    // A name may also be a class of the program itself; that of a vendor's folder is a library.
    const bool of_vendor = fs::is_directory(home_ / "vendors" / path / "plugin", error);
    if (!is_library && !of_vendor) return;
    const fs::path library = is_library ? path : plugins_ / (path.string() + ".so");
    if (fs::exists(library, error)) return;
    problems.push_back(fmt::format("{}: Global.plugin is {}, but {} does not exist", resolved.place(plugin->origin()),
                                   plugin->text(), plain(library.string())));
  }

  fs::path home_;
  std::string vendor_;
  fs::path plugins_;
  fs::path folder_;
  std::optional<VendorInfo> info_;
  std::vector<VendorCheck> checks_;
};

}  // namespace

std::vector<VendorCheck> check_vendor(const fs::path& home, const std::string& vendor, const fs::path& plugins) {
  const auto known = list_vendors(home);
  if (!is_plain_name(vendor) || std::find(known.begin(), known.end(), vendor) == known.end()) {
    throw ConfigError(fmt::format("there is no vendor '{}' in {}{}", vendor, (home / "vendors").string(),
                                  did_you_mean(vendor, known)));
  }
  return VendorChecker(home, vendor, plugins).run();
}

Json to_json(const VendorCheck& check) {
  return {{"vendor", check.vendor}, {"check", check.check}, {"passed", check.passed}, {"problems", check.problems}};
}

}  // namespace assay
