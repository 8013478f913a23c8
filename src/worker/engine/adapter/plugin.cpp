#include "engine/adapter/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace assay {

namespace {

struct RegisteredAdapter {
  std::string name;
  std::function<std::unique_ptr<Adapter>()> make;
};

std::vector<RegisteredAdapter>& adapter_classes() {
  static std::vector<RegisteredAdapter> classes = {{"default", [] { return std::make_unique<Adapter>(); }}};
  return classes;
}

// Global.plugin is the path of a library rather than a name.
bool is_library(const std::string& plugin) {
  const fs::path path = plugin;
  return path.has_parent_path() || path.extension() == ".so";
}

fs::path bundled_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path() / "plugins";
}

// A text of the plugin's; a descriptor of another kind may hold anything, so only after the magic was right.
std::string text_or(const char* text, const char* fallback) { return text ? text : fallback; }

void check_descriptor(const PluginDescriptor* descriptor, const std::string& file) {
  const auto refuse = [&](const std::string& reason) { throw ConfigError(fmt::format("plugin {}: {}", file, reason)); };
  if (!descriptor) refuse("its assay_plugin() returns nothing");
  if (descriptor->magic != kPluginMagic) refuse("its descriptor is not one of assay; use the macro ASSAY_PLUGIN");
  if (descriptor->interface_version != kPluginInterface) {
    refuse(
        fmt::format("it was built for plugin interface {}, this program has {}; build it again with this version's "
                    "headers",
                    descriptor->interface_version, kPluginInterface));
  }
  if (descriptor->struct_size != sizeof(PluginDescriptor)) {
    refuse(fmt::format("its descriptor has {} bytes, this program's {}; build it again with this version's headers",
                       descriptor->struct_size, sizeof(PluginDescriptor)));
  }
  const std::string libtorch = text_or(descriptor->libtorch_version, "nothing");
  if (libtorch != TORCH_VERSION) {
    refuse(fmt::format("it was built for libtorch {}, this program uses {}", libtorch, TORCH_VERSION));
  }
  const std::string compiler = text_or(descriptor->compiler, "nothing");
  if (compiler != ASSAY_PLUGIN_COMPILER) {
    refuse(fmt::format("it was built with another compiler: {}, this program: {}", compiler, ASSAY_PLUGIN_COMPILER));
  }
  if (text_or(descriptor->name, "").empty()) refuse("its descriptor has no name");
  if (!descriptor->create) refuse("its descriptor has no factory");
}

}  // namespace

LoadedAdapter load_plugin(const fs::path& library) {
  const std::string file = library.string();
  std::error_code error;
  if (!fs::is_regular_file(library, error)) throw ConfigError(fmt::format("plugin {}: there is no such file", file));
  // Resolved now: a missing symbol is an error here, not in the middle of a training.
  void* handle = ::dlopen(fs::absolute(library).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw ConfigError(fmt::format("plugin {}: it cannot be loaded: {}", file, ::dlerror()));
  void* symbol = ::dlsym(handle, kPluginSymbol);
  if (!symbol) {
    throw ConfigError(fmt::format("plugin {}: it has no symbol '{}'; end its source with ASSAY_PLUGIN(name, class)",
                                  file, kPluginSymbol));
  }
  using Entry = const PluginDescriptor* (*)();
  const PluginDescriptor* descriptor = reinterpret_cast<Entry>(symbol)();
  check_descriptor(descriptor, file);
  char reason[512] = "";
  std::unique_ptr<Adapter> adapter(descriptor->create(reason, sizeof reason));
  if (!adapter) {
    throw ConfigError(fmt::format("plugin {}: its adapter '{}' cannot be created: {}", file, descriptor->name,
                                  reason[0] ? reason : "no reason given"));
  }
  return {std::move(adapter), descriptor->name, fs::absolute(library).string(), sha256_file(library)};
}

void register_adapter(const std::string& name, std::function<std::unique_ptr<Adapter>()> factory) {
  const std::vector<std::string> taken = registered_adapters();
  const auto refuse = [&](const char* reason) { throw ConfigError(fmt::format("adapter '{}': {}", name, reason)); };
  if (name.empty() || is_library(name)) refuse("a class needs a name that is not that of a library");
  if (std::find(taken.begin(), taken.end(), name) != taken.end()) refuse("a class of this name already exists");
  adapter_classes().push_back({name, std::move(factory)});
}

std::vector<std::string> registered_adapters() {
  std::vector<std::string> names;
  for (const RegisteredAdapter& known : adapter_classes()) names.push_back(known.name);
  return names;
}

std::vector<fs::path> bundled_plugins() {
  std::vector<fs::path> libraries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(bundled_folder(), ignored)) {
    if (entry.path().extension() == ".so") libraries.push_back(entry.path());
  }
  std::sort(libraries.begin(), libraries.end());
  return libraries;
}

LoadedAdapter make_adapter(const std::string& plugin) {
  if (is_library(plugin)) return load_plugin(plugin);
  for (const RegisteredAdapter& known : adapter_classes()) {
    if (plugin != known.name) continue;
    std::unique_ptr<Adapter> adapter = known.make();
    if (!adapter) throw ConfigError(fmt::format("adapter '{}': its factory returned no adapter", plugin));
    return {std::move(adapter), known.name, "", ""};
  }
  std::vector<std::string> names = registered_adapters();
  for (const fs::path& library : bundled_plugins()) {
    if (library.stem() == plugin) return load_plugin(library);
    names.push_back(library.stem().string());
  }
  throw ConfigError(fmt::format("Global.plugin '{}': unknown{}; known are {}; a library needs its path", plugin,
                                did_you_mean(plugin, names), join(names, ", ")));
}

}  // namespace assay
