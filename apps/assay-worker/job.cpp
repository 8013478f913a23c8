#include "job.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/utils.h>

#include <cstdlib>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "device/allocator.h"
#include "device/info.h"
#include "device/threads.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/loop/record_observer.h"
#include "record/keys.h"

namespace assay {

namespace {

int environment_number(const char* name, int fallback) {
  const char* text = std::getenv(name);
  if (!text || !*text) return fallback;
  const auto value = parse_int(text);
  if (!value || *value < 0 || *value > 1'000'000) {
    throw ConfigError(fmt::format("environment variable {}={}: must be a number, 0 or more", name, text));
  }
  return static_cast<int>(*value);
}

// {"a": {"b": 1}} -> {"a.b": 1}: how parameters are named everywhere else.
void flatten_into(const Json& value, const std::string& path, Json& out) {
  if (!value.is_object()) {
    out[path] = value;
    return;
  }
  for (const auto& [key, item] : value.items()) flatten_into(item, path.empty() ? key : path + "." + key, out);
}

Record record_of_type(Record::Type type, Json data) {
  Record record;
  record.type = type;
  record.data = std::move(data);
  return record;
}

// Paddle's environment numbers trainers and servers apart; as everywhere here trainers come first.
std::optional<int> server_job_rank(const std::optional<ps::Role>& role) {
  if (!role) return std::nullopt;
  return role->is_server ? role->num_trainers + role->index : role->index;
}

}  // namespace

RankEnvironment read_rank_environment() {
  RankEnvironment rank{.rank = environment_number("RANK", 0),
                       .world_size = environment_number("WORLD_SIZE", 1),
                       .local_rank = environment_number("LOCAL_RANK", 0),
                       .local_world_size = environment_number("LOCAL_WORLD_SIZE", environment_number("WORLD_SIZE", 1)),
                       .master_address = "127.0.0.1",
                       .master_port = environment_number("MASTER_PORT", 0)};
  if (rank.rank >= std::max(rank.world_size, 1)) {
    throw ConfigError(fmt::format("RANK={}: must be below WORLD_SIZE={}", rank.rank, rank.world_size));
  }
  if (rank.local_world_size < 1 || rank.local_world_size > rank.world_size) {
    throw ConfigError(
        fmt::format("LOCAL_WORLD_SIZE={}: must be from 1 to WORLD_SIZE={}", rank.local_world_size, rank.world_size));
  }
  if (const char* address = std::getenv("MASTER_ADDR"); address && *address) rank.master_address = address;
  if (rank.world_size > 1 && (rank.master_port < 1 || rank.master_port > 65535)) {
    throw ConfigError(
        fmt::format("WORLD_SIZE={}: several processes find each other at MASTER_ADDR and MASTER_PORT, but "
                    "MASTER_PORT is not a port",
                    rank.world_size));
  }
  return rank;
}

std::filesystem::path records_path(const JobArguments& arguments) {
  const char* path = std::getenv("ASSAY_RECORDS");
  if (path && *path) return path;
  const int rank = server_job_rank(ps::role_from()).value_or(0);
  return arguments.output / (rank == 0 ? "records.jsonl" : fmt::format("records.rank{}.jsonl", rank));
}

Job::Job(const JobArguments& arguments, const char* command, const Stopwatch& started)
    : arguments_(arguments), started_(started), rank_(read_rank_environment()) {
  const std::string_view name = command;
  if (name == "train" || name == "serve") server_role_ = ps::role_from();
  if (rank_.world_size == 1) rank_.rank = server_job_rank(server_role_).value_or(0);
  if (rank_.world_size > 1 && name != "train" && name != "serve") {
    throw ConfigError(
        fmt::format("WORLD_SIZE={}: {} is done by one process; only train by several", rank_.world_size, command));
  }
  install_caching_allocator();
  configure_threads(rank_.local_world_size);
  make_folder(arguments_.output);
  const std::filesystem::path records = records_path(arguments_);
  if (records.has_parent_path()) make_folder(records.parent_path());
  records_ = std::make_unique<RecordWriter>(records, rank_.rank);
  write_event(*records_, keys::kInitStart, {{"command", command}});

  config_ = read_worker_config(arguments_.config);
  options_ = read_engine_options(config_);
  choose_device();
  records_->write(record_of_type(Record::Type::Environment, machine_info(/*measure=*/false)));
  Json parameters = Json::object();
  flatten_into(config_.config, "", parameters);
  parameters["case"] = config_.key;
  parameters["config_hash"] = config_.hash;
  if (!adapter_.library.empty()) {
    parameters["plugin"] = {{"name", adapter_.name}, {"library", adapter_.library}, {"sha256", adapter_.sha256}};
  }
  records_->write(record_of_type(Record::Type::Parameters, std::move(parameters)));
}

// The vendor's adapter first, since it may bring the device.
void Job::choose_device() {
  const Reader global = config_.section("Global");
  try {
    adapter_ = make_adapter(options_.plugin.value_or("default"));
    for (const DeviceSpec& device : adapter_.adapter->devices()) devices_.add(device, adapter_.name);
  } catch (const ConfigError& error) {
    global.fail("plugin", error.what());
  }
  const DeviceSpec* device = devices_.find(options_.device);
  if (!device) {
    global.fail(
        "device",
        fmt::format("is not a known device{}; available: {}. Other devices need a vendor plugin (Global.plugin), see "
                    "docs/extend/add-a-vendor.md",
                    did_you_mean(options_.device, devices_.names()), join(devices_.names(), ", ")));
  }
  try {
    options_.precision.device = torch::Device(device->type);
    torch::empty({1}, options_.precision.device);
  } catch (const c10::Error& error) {
    global.fail("device", fmt::format("computes on libtorch's '{}', which is not available here", device->type));
  }
}

std::optional<double> Job::peak_flops() const {
  return devices_.peak_flops(options_.device, precision_name(options_.precision), at::get_num_threads());
}

std::unique_ptr<Module> Job::make_module() const {
  torch::manual_seed(static_cast<uint64_t>(options_.seed));
  return assay::make_module(config_.section("Model"));
}

std::unique_ptr<Module> Job::load_module(std::string& weights_hash) const {
  std::unique_ptr<Module> module = make_module();
  Precision({.dtype = options_.precision.dtype}).convert(module->model());  // weights are saved in the type of the run
  load_into(module->model(), load_tensors(arguments_.weights).tensors, arguments_.weights.string());
  weights_hash = hash_of(state_of(module->model()));
  return module;
}

std::unique_ptr<Module> Job::load_published(std::string& weights_hash) const {
  std::unique_ptr<Module> module = make_module();
  weights_hash = load_pretrained(arguments_.weights, *module);
  return module;
}

comm::World* Job::join_world(const ParallelOptions& options) {
  if (rank_.world_size == 1) return nullptr;
  world_ = comm::World::join({.rank = rank_.rank,
                              .world_size = rank_.world_size,
                              .master_address = rank_.master_address,
                              .master_port = rank_.master_port,
                              .transport = options.transport,
                              .interface = options.interface,
                              .time_limit_s = options.time_limit_s,
                              .join_limit_s = options.join_limit_s});
  return world_.get();
}

void Job::tell_failure(const std::exception& error) {
  if (!world_) return;
  const auto* typed = dynamic_cast<const Error*>(&error);
  const bool known = typed && (typed->kind() == ErrorKind::Communication || typed->kind() == ErrorKind::Interrupted);
  if (!known) world_->fail(error.what(), typed ? typed->kind() : ErrorKind::Internal);
}

std::unique_ptr<Loader> Job::need_loader(const std::string& part, const Replicas& replicas) const {
  std::unique_ptr<Loader> loader =
      make_loader(config_, part, options_.local_batch_size, static_cast<uint64_t>(options_.seed), replicas);
  if (!loader) throw ConfigError(fmt::format("{}: has no section Data.{}", arguments_.config.string(), part));
  return loader;
}

Json Job::hashes(const Loader& data, const std::string& weights_hash) const {
  return {{"case", config_.hash}, {"data", data.dataset().hash()}, {"code", commit()}, {"weights", weights_hash}};
}

void Job::write_result(Json data) {
  Record record = record_of_type(Record::Type::Result, std::move(data));
  record.name = config_.case_name;
  records_->write(std::move(record));
}

void write_predictions(const std::filesystem::path& path, const torch::Tensor& logits, const torch::Tensor& labels,
                       const std::string& case_name, const std::string& weights_hash) {
  save_tensors(path, {{"logits", logits.to(torch::kFloat)}, {"labels", labels.to(torch::kLong)}},
               {{"case", case_name}, {"weights_hash", weights_hash}});
}

}  // namespace assay
