#include "device/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <memory>

namespace assay {

namespace {

// From NVIDIA's documented C interface; there is no header to include where there is no driver.
using Handle = void*;
struct Memory {
  unsigned long long total, free, used;
};
constexpr int kSuccess = 0;
constexpr unsigned kTextSize = 96;

struct Library {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Handle*) = nullptr;
  int (*name)(Handle, char*, unsigned) = nullptr;
  int (*uuid)(Handle, char*, unsigned) = nullptr;
  int (*memory)(Handle, Memory*) = nullptr;
  const char* (*error_text)(int) = nullptr;

  bool load(void* library) {
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
      return function != nullptr;
    };
    find(error_text, "nvmlErrorString");
    return find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") && find(count, "nvmlDeviceGetCount_v2") &&
           find(handle, "nvmlDeviceGetHandleByIndex_v2") && find(name, "nvmlDeviceGetName") &&
           find(uuid, "nvmlDeviceGetUUID") && find(memory, "nvmlDeviceGetMemoryInfo");
  }
};

NvmlDevice describe(const Library& nvml, unsigned index) {
  NvmlDevice device;
  Handle handle = nullptr;
  if (nvml.handle(index, &handle) != kSuccess) return device;
  std::array<char, kTextSize> text{};
  if (nvml.name(handle, text.data(), kTextSize) == kSuccess) device.name = text.data();
  text.fill(0);
  if (nvml.uuid(handle, text.data(), kTextSize) == kSuccess) device.uuid = text.data();
  Memory memory{};
  if (nvml.memory(handle, &memory) == kSuccess) device.memory_bytes = static_cast<int64_t>(memory.total);
  return device;
}

}  // namespace

NvmlReport query_nvml(const std::string& name) {
  NvmlReport report;
  const std::unique_ptr<void, int (*)(void*)> library(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL), ::dlclose);
  if (!library) {
    report.detail = name + " is not installed";
    return report;
  }
  Library nvml;
  report.state = NvmlReport::State::NoDriver;
  if (!nvml.load(library.get())) {
    report.detail = name + " lacks the functions of NVML";
    return report;
  }
  if (const int error = nvml.init(); error != kSuccess) {
    report.detail = fmt::format("{} (error {})", nvml.error_text ? nvml.error_text(error) : "no driver", error);
    return report;
  }
  report.state = NvmlReport::State::Ok;
  unsigned count = 0;
  nvml.count(&count);
  for (unsigned i = 0; i < count; ++i) report.devices.push_back(describe(nvml, i));
  nvml.shutdown();
  report.detail = fmt::format("{} devices", count);
  return report;
}

}  // namespace assay
