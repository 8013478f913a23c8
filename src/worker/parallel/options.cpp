#include "parallel/options.h"

#include <fmt/format.h>

#include "base/error.h"

namespace assay {

namespace {

int degree(Reader& section, const std::string& key) {
  const int64_t value = section.get_int(key, 1);
  if (value < 1 || value > 1'000'000) section.fail(key, "must be at least 1");
  return static_cast<int>(value);
}

}  // namespace

ParallelOptions read_parallel_options(const WorkerConfig& config, int world_size) {
  Reader section = config.section("Distributed");
  Reader sharding = section.section("sharding");
  Reader comm = section.section("comm");
  Reader servers = section.section("ps");
  ParallelOptions o;
  o.data = degree(section, "dp_degree");
  o.tensor = degree(section, "mp_degree");
  o.pipeline = degree(section, "pp_degree");
  o.virtual_stages = degree(section, "virtual_pp_degree");
  o.sequence = section.get_bool("sequence_parallel", o.sequence);
  o.segments = section.get_choice("pp_segments", {"parameters", "layers", "time"}, o.segments);
  o.bucket_bytes = static_cast<int64_t>(section.get_double("bucket_mb", 16) * 1e6);
  if (o.bucket_bytes < 1) section.fail("bucket_mb", "must be above 0");
  o.find_unused = section.get_bool("find_unused_parameters", o.find_unused);
  o.check_replicas = section.get_bool("check_replicas", o.check_replicas);
  section.ignore("max_restarts");  // whoever starts the processes knows it
  section.finish();
  o.sharding = degree(sharding, "sharding_degree");
  o.sharding_stage = degree(sharding, "sharding_stage");
  if (o.sharding_stage > 3) sharding.fail("sharding_stage", "must be 1, 2 or 3");
  // On the processor all state is in host memory, and sums and gathers overlap with computation anyway.
  for (const char* key : {"sharding_offload", "reduce_overlap", "broadcast_overlap"}) sharding.ignore(key);
  sharding.finish();
  o.transport = comm::transport_of(comm.get_choice("transport", {"auto", "shared_memory", "gloo"}, "auto"));
  o.time_limit_s = comm.get_double("time_limit_s", o.time_limit_s);
  if (!(o.time_limit_s > 0)) comm.fail("time_limit_s", "must be above 0");
  o.join_limit_s = comm.get_double("join_limit_s", o.join_limit_s);
  if (!(o.join_limit_s > 0)) comm.fail("join_limit_s", "must be above 0");
  o.interface = comm.get_string("interface", "");
  comm.finish();
  for (const char* key : {"mode", "geo_steps"}) servers.ignore(key);
  servers.finish();
  if (o.world_size() != world_size) {
    section.fail("dp_degree", fmt::format("dp {} * sharding {} * pp {} * mp {} is not WORLD_SIZE {}", o.data,
                                          o.sharding, o.pipeline, o.tensor, world_size));
  }
  if (o.virtual_stages > 1 && o.pipeline == 1) section.fail("virtual_pp_degree", "needs pp_degree above 1");
  if (o.sequence && o.tensor == 1) section.fail("sequence_parallel", "needs mp_degree above 1");
  if (o.shards() && o.sharding_stage == 3 && o.pipeline > 1) {
    throw ConfigError(
        "Distributed.sharding.sharding_stage 3 with pp_degree above 1: a pipeline keeps its own weights "
        "anyway; use stage 1 or 2");
  }
  return o;
}

}  // namespace assay
