// What every command of the worker shares: where it runs, what it reads, where it writes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/server_role.h"
#include "base/time.h"
#include "comm/world.h"
#include "config/worker_config.h"
#include "data/factory.h"
#include "engine/adapter/plugin.h"
#include "engine/options.h"
#include "models/registry.h"
#include "parallel/options.h"
#include "record/stream.h"

namespace assay {

struct RankEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string master_address = "127.0.0.1";
  int master_port = 0;
};
// From RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Throws ConfigError for nonsense.
RankEnvironment read_rank_environment();

struct JobArguments {
  std::filesystem::path config;
  std::filesystem::path output;
  std::filesystem::path weights;    // evaluate, export, generate
  std::filesystem::path model;      // infer
  std::filesystem::path prompt;     // generate: a file with the text to continue
  std::filesystem::path tokenizer;  // generate: its folder; empty: the one of the case's data
  bool json = false;                // generate: JSON instead of text
};

// ASSAY_RECORDS, or records.jsonl in the output folder; of other processes than trainer 0 in a job with parameter
// servers records.rank<n>.jsonl.
std::filesystem::path records_path(const JobArguments& arguments);

// Everything a command needs, made in this order: threads and memory, records, configuration. INIT_START, the
// environment and the effective parameters are written before anything is measured.
class Job {
 public:
  Job(const JobArguments& arguments, const char* command, const Stopwatch& started);

  const JobArguments& arguments() const { return arguments_; }
  const WorkerConfig& config() const { return config_; }
  const EngineOptions& options() const { return options_; }
  RecordWriter& records() { return *records_; }
  Adapter& adapter() { return *adapter_.adapter; }
  const RankEnvironment& rank() const { return rank_; }
  // The part of this process in a job with parameter servers; nullopt: there are none.
  const std::optional<ps::Role>& server_role() const { return server_role_; }
  // Joins the other processes of this job, once. Null when there is one. Throws CommunicationError.
  comm::World* join_world(const ParallelOptions& options);
  // Tells the other processes why this one fails, unless they know by themselves.
  void tell_failure(const std::exception& error);
  // Of the device and precision of this run, a second; nullopt: unknown.
  std::optional<double> peak_flops() const;
  const Stopwatch& started() const { return started_; }

  // The module of the section Model, its weights drawn from the seed.
  std::unique_ptr<Module> make_module() const;
  // The same with the weights of --weights; their hash in `weights_hash`.
  std::unique_ptr<Module> load_module(std::string& weights_hash) const;
  // The same with weights that others may have published.
  std::unique_ptr<Module> load_published(std::string& weights_hash) const;
  // Throws ConfigError when the configuration has no such part.
  std::unique_ptr<Loader> need_loader(const std::string& part, const Replicas& replicas = {}) const;

  void write_result(Json data);
  // The hashes that every result has: case, data, code, weights.
  Json hashes(const Loader& data, const std::string& weights_hash) const;

 private:
  void choose_device();

  JobArguments arguments_;
  Stopwatch started_;
  RankEnvironment rank_;
  std::optional<ps::Role> server_role_;
  std::unique_ptr<comm::World> world_;
  std::unique_ptr<RecordWriter> records_;
  WorkerConfig config_;
  EngineOptions options_;
  LoadedAdapter adapter_;
  DeviceRegistry devices_;
};

// logits [N, ...] float32 and labels [N, ...] int64, with the lineage in the metadata.
void write_predictions(const std::filesystem::path& path, const torch::Tensor& logits, const torch::Tensor& labels,
                       const std::string& case_name, const std::string& weights_hash);

}  // namespace assay
