// Vendors' adapters: C++ classes registered here, and libraries opened at run time. A library says by a descriptor in C
// what it was built for; only when all of it fits is any of its C++ touched.
#pragma once

#include <torch/version.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/adapter/adapter.h"

namespace assay {

// Changes whenever a class that plugins see changes: Adapter, Optimizer, LossScaler, Module, Network, DeviceSpec.
// tests/worker/engine/interface_test.cpp fails when their headers change and this number does not.
inline constexpr uint32_t kPluginInterface = 3;
inline constexpr uint64_t kPluginMagic = 0x4e494c5059535341;  // "ASSYPLIN", read as bytes on a little-endian machine
inline constexpr char kPluginSymbol[] = "assay_plugin";

// Two compilers whose classes have the same layout have the same text.
#define ASSAY_TEXT_(x) #x
#define ASSAY_TEXT(x) ASSAY_TEXT_(x)
#define ASSAY_PLUGIN_COMPILER \
  "g++ ABI " ASSAY_TEXT(__GXX_ABI_VERSION) ", C++11 strings " ASSAY_TEXT(_GLIBCXX_USE_CXX11_ABI)

// New fields go to the end; struct_size says how much of it a plugin knows.
struct PluginDescriptor {
  uint64_t magic;
  uint32_t struct_size;
  uint32_t interface_version;
  const char* libtorch_version;
  const char* compiler;
  const char* name;
  // The caller owns the result. Null, with a message in `error`, when it cannot be made.
  Adapter* (*create)(char* error, size_t error_size);
};

// At the end of a plugin's source: ASSAY_PLUGIN("acme", AcmeAdapter).
#define ASSAY_PLUGIN(plugin_name, AdapterClass)                                                                        \
  extern "C" __attribute__((visibility("default"))) const ::assay::PluginDescriptor* assay_plugin() {                  \
    static const ::assay::PluginDescriptor kDescriptor = {                                                             \
        ::assay::kPluginMagic,                                                                                         \
        sizeof(::assay::PluginDescriptor),                                                                             \
        ::assay::kPluginInterface,                                                                                     \
        TORCH_VERSION,                                                                                                 \
        ASSAY_PLUGIN_COMPILER,                                                                                         \
        plugin_name,                                                                                                   \
        [](char* error, size_t error_size) -> ::assay::Adapter* {                                                      \
          return ::assay::create_guarded([]() -> ::assay::Adapter* { return new AdapterClass(); }, error, error_size); \
        }};                                                                                                            \
    return &kDescriptor;                                                                                               \
  }

// For the macro: exceptions do not cross the C boundary.
template <typename Make>
Adapter* create_guarded(Make make, char* error, size_t error_size) {
  const auto say = [&](const char* text) { std::snprintf(error, error_size, "%s", text); };
  try {
    return make();
  } catch (const std::exception& thrown) {
    say(thrown.what());
  } catch (...) {
    say("an exception that is not a std::exception");
  }
  return nullptr;
}

struct LoadedAdapter {
  std::unique_ptr<Adapter> adapter;
  std::string name;
  std::string library;  // path; empty for a class of this program
  std::string sha256;   // of the library
};

// Opens a plugin library and makes its adapter. The library stays loaded. Throws ConfigError naming the file and what
// does not fit.
LoadedAdapter load_plugin(const std::filesystem::path& library);

// What Global.plugin says: a library (a path, or a name ending in .so), the name of a registered class, or the name of
// a library in the folder `plugins` beside this program. Throws ConfigError with the known names.
LoadedAdapter make_adapter(const std::string& plugin);

// A class of this program: from now on Global.plugin may name it. Throws ConfigError for a name that is taken, empty or
// that of a library. Not thread-safe; a program calls it before its first make_adapter().
void register_adapter(const std::string& name, std::function<std::unique_ptr<Adapter>()> factory);
// Classes of this program, by name; "default", which replaces nothing, is always there.
std::vector<std::string> registered_adapters();
// Libraries in the folder `plugins` beside this program.
std::vector<std::filesystem::path> bundled_plugins();

}  // namespace assay
