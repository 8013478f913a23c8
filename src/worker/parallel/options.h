// The section Distributed: how many processes share the work in which way.
#pragma once

#include <cstdint>
#include <string>

#include "comm/world.h"
#include "config/worker_config.h"

namespace assay {

struct ParallelOptions {
  // The product is the number of processes.
  int data = 1;      // dp_degree
  int sharding = 1;  // sharding_degree
  int pipeline = 1;  // pp_degree
  int tensor = 1;    // mp_degree
  int sharding_stage = 1;
  bool sequence = false;                // split sequences between tensor-parallel layers
  int virtual_stages = 1;               // chunks of the network a pipeline stage has
  std::string segments = "parameters";  // what stages have an equal share of: parameters, layers, time
  int64_t bucket_bytes = 16 << 20;
  bool find_unused = false;
  bool check_replicas = false;
  comm::TransportKind transport = comm::TransportKind::Auto;
  double time_limit_s = 30;
  double join_limit_s = 30;
  std::string interface;
  // For tests that a wrong strategy is noticed: "dp-no-sync", "sharded-no-gather", "pp-no-tie".
  std::string broken = {};

  int world_size() const { return data * sharding * pipeline * tensor; }
  bool shards() const { return sharding > 1; }
};

// Throws ConfigError naming file, line and key; also when the degrees are not those of `world_size` processes.
ParallelOptions read_parallel_options(const WorkerConfig& config, int world_size);

}  // namespace assay
