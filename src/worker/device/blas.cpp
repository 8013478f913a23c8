#include "device/blas.h"

#include <dlfcn.h>

#include <filesystem>

#include "device/cpu.h"

namespace assay {

namespace {

template <typename Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

std::string library_of(void* symbol) {
  Dl_info info{};
  if (!symbol || ::dladdr(symbol, &info) == 0 || !info.dli_fname) return "";
  std::error_code ignored;
  const auto path = std::filesystem::canonical(info.dli_fname, ignored);
  return ignored ? info.dli_fname : path.string();
}

}  // namespace

BlasInfo blas_info() {
  BlasInfo info;
  info.library = library_of(::dlsym(RTLD_DEFAULT, "sgemm_"));
  auto* parallel = find<int()>("openblas_get_parallel");
  if (parallel) {
    info.openblas = true;
    info.parallel = parallel();
    if (auto* config = find<char*()>("openblas_get_config")) info.config = config();
    if (auto* threads = find<int()>("openblas_get_num_threads")) info.threads = threads();
  }
  // The reference library exports no openblas_ symbols, but libopenblas may be loaded beside it by LAPACK: what counts
  // is who provides sgemm_.
  if (info.library.empty()) {
    info.problem = "no BLAS library is loaded";
  } else if (info.library.find("openblas") == std::string::npos) {
    info.openblas = false;
    info.problem = "matrix products use " + info.library + ", which is not OpenBLAS: about 40 times slower";
  } else if (info.parallel && *info.parallel != 2) {
    info.problem = "OpenBLAS was built without OpenMP: it does not follow the number of threads";
  } else if (cpu_info().simd == "avx512" && info.config.find("SkylakeX") == std::string::npos &&
             info.config.find("Cooperlake") == std::string::npos &&
             info.config.find("SapphireRapids") == std::string::npos) {
    info.problem = "OpenBLAS does not use the 512-bit registers of this processor (" + info.config +
                   "): OPENBLAS_CORETYPE=SkylakeX makes it";
  }
  return info;
}

}  // namespace assay
