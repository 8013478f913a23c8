// Loaders from the sections Data.Train, Data.Eval and Data.Test.
#pragma once

#include <memory>
#include <string>

#include "config/worker_config.h"
#include "data/loader.h"

namespace assay {

// Processes that share every batch, see Sampler::Options.
struct Replicas {
  int64_t count = 1;
  int64_t index = 0;
  int64_t num_parts = 1;  // micro-batches of a batch
};

// `part`: "Train", "Eval" or "Test". `batch_size` applies where the section has none of its own. Null when the
// configuration has no such section. Throws ConfigError, or DataError naming the file; in the closed division also when
// a file is not the one whose SHA-256 the case declares.
std::unique_ptr<Loader> make_loader(const WorkerConfig& config, const std::string& part, int64_t batch_size,
                                    uint64_t seed, const Replicas& replicas = {});

}  // namespace assay
