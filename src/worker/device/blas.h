// Which BLAS library this process really got: a link of the system decides, and the wrong one is 40 times slower.
#pragma once

#include <optional>
#include <string>

namespace assay {

struct BlasInfo {
  std::string library;  // path of the file that provides sgemm_; empty when there is none
  bool openblas = false;
  std::string config;           // OpenBLAS's own description
  std::optional<int> parallel;  // OpenBLAS: 0 sequential, 1 pthreads, 2 OpenMP
  std::optional<int> threads;
  std::string problem;  // empty when all is well; else one sentence
};

// Looks in the libraries this process has loaded.
BlasInfo blas_info();

}  // namespace assay
