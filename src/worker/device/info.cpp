#include "device/info.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/version.h>
#if __has_include(<gloo/config.h>)
#include <gloo/config.h>
#endif
#include <fmt/format.h>

#include "base/version.h"
#include "device/allocator.h"
#include "device/blas.h"
#include "device/cpu.h"
#include "device/nvml.h"
#include "device/threads.h"

namespace assay {

namespace {

constexpr double kMeasureSeconds = 0.4;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json gloo_group() {
  Json group = {{"present", false}, {"version", nullptr}};
  void* library = ::dlopen("libgloo.so.0", RTLD_LAZY | RTLD_LOCAL);
  group["present"] = library != nullptr;
  if (library) ::dlclose(library);
#ifdef GLOO_VERSION_MAJOR
  group["version"] = fmt::format("{}.{}.{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
#endif
  return group;
}

Json blas_group(bool measure) {
  const BlasInfo blas = blas_info();
  return {{"library", text_or_null(blas.library)},
          {"openblas", blas.openblas},
          {"config", text_or_null(blas.config)},
          {"parallel", or_null(blas.parallel)},
          {"threads", or_null(blas.threads)},
          {"problem", text_or_null(blas.problem)},
          {"sgemm_gflops", measure ? Json(measure_sgemm_gflops(kMeasureSeconds)) : Json(nullptr)}};
}

Json devices_group() {
  const NvmlReport nvml = query_nvml();
  Json list = Json::array();
  for (const NvmlDevice& device : nvml.devices) {
    list.push_back({{"name", device.name}, {"uuid", device.uuid}, {"memory_bytes", device.memory_bytes}});
  }
  const char* state = nvml.state == NvmlReport::State::Ok         ? "ok"
                      : nvml.state == NvmlReport::State::NoDriver ? "no driver"
                                                                  : "library absent";
  return {{"nvml", state}, {"detail", nvml.detail}, {"list", list}};
}

}  // namespace

Json machine_info(bool measure) {
  const CpuInfo cpu = cpu_info();
  const int threads = at::get_num_threads();
  Json info;
  info["worker"] = {{"version", version()}, {"commit", commit()}};
  info["compiler"] = {{"name", "g++"}, {"version", __VERSION__}};
#ifdef __clang__
  info["compiler"]["name"] = "clang";
#endif
  info["libtorch"] = {{"version", TORCH_VERSION}};
  info["onednn"] = {{"version", at::get_mkldnn_version()}};
  info["gloo"] = gloo_group();
  info["blas"] = blas_group(measure);
  info["cpu"] = {{"model", cpu.model},
                 {"logical_cores", cpu.logical_cores},
                 {"usable_cores", cpu.usable_cores},
                 {"simd", cpu.simd},
                 {"fma_gflops", measure ? Json(measure_fma_gflops(threads, kMeasureSeconds)) : Json(nullptr)}};
  info["memory"] = {{"total_bytes", cpu.memory_bytes}, {"available_bytes", cpu.available_memory_bytes}};
  info["malloc"] = {{"tensors", caching_allocator_installed() ? "caching" : "libtorch"}, {"other", "glibc"}};
  info["threads"] = {{"compute", threads}, {"choice", choose_threads(1).reason}};
  info["devices"] = devices_group();
  return info;
}

}  // namespace assay
