// What the machine and the libraries are, as one JSON object: for `assay doctor` and for the environment of a run.
#pragma once

#include "base/json.h"

namespace assay {

// Groups: worker, compiler, libtorch, onednn, gloo, blas, cpu, memory, malloc, threads, devices. With `measure`, blas
// has sgemm_gflops and cpu has fma_gflops (about a second); without, both are null.
Json machine_info(bool measure);

}  // namespace assay
