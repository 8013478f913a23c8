#include "engine/checkpoint/checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "engine/checkpoint/tensor_file.h"

namespace assay {

namespace {

constexpr int kFormat = 2;
constexpr char kWeightsFile[] = "model.safetensors";
constexpr char kOptimizerFile[] = "optimizer.safetensors";
constexpr char kConfigFile[] = "config.json";
constexpr char kMetaFile[] = "meta.json";
constexpr char kUnfinished[] = ".unfinished-";

torch::Tensor random_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(const torch::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

struct NameParts {
  int64_t epoch;
  int64_t step;
};
// The numbers in "epoch_3_step_1200"; nullopt for any other name.
std::optional<NameParts> parse_name(const std::string& name) {
  const std::vector<std::string> parts = split(name, '_');
  if (parts.size() != 4 || parts[0] != "epoch" || parts[2] != "step") return std::nullopt;
  const auto epoch = parse_int(parts[1]);
  const auto step = parse_int(parts[3]);
  if (!epoch || !step || *epoch < 0 || *step < 0) return std::nullopt;
  return NameParts{*epoch, *step};
}

void remove_unfinished(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool unfinished_list = name.starts_with("best.json.") && name.ends_with(".tmp");
    if (name.starts_with(kUnfinished) || unfinished_list) fs::remove_all(entry.path(), ignored);
  }
}

// A row-major copy, so that whoever writes it later needs nothing but its bytes.
NamedTensors copies_of(const NamedTensors& tensors) {
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) {
    torch::Tensor copy = torch::empty(tensor.sizes(), torch::TensorOptions().dtype(tensor.dtype()));
    copies.emplace_back(name, copy.copy_(tensor.detach()));
  }
  return copies;
}

std::map<std::string, torch::Tensor> by_name(const NamedTensors& tensors) { return {tensors.begin(), tensors.end()}; }

struct Contents {
  LoadedCheckpoint loaded;
  std::map<std::string, torch::Tensor> weights;
  std::map<std::string, torch::Tensor> optimizer;
  std::optional<torch::Tensor> random;  // nullopt: the generator stays as it is
  Json parts;
};

// The SHA-256 of every file, before anything in it is believed.
void check_files(const fs::path& checkpoint, const Json& sums) {
  for (const char* name : {kWeightsFile, kOptimizerFile}) sums.at(name);
  for (const auto& [name, sum] : sums.items()) {
    if (name.find('/') != std::string::npos || sha256_file(checkpoint / name) != sum.get<std::string>()) {
      throw DataError(
          fmt::format("{}: damaged: its content differs from what was saved", (checkpoint / name).string()));
    }
  }
}

Contents read_contents(const fs::path& checkpoint) {
  const fs::path meta_path = checkpoint / kMetaFile;
  const Json meta = read_json_file(meta_path);
  Contents contents;
  try {
    if (meta.at("format").get<int>() != kFormat) {
      throw DataError(fmt::format("{}: format {}, this program reads {}", meta_path.string(),
                                  meta.at("format").get<int>(), kFormat));
    }
    check_files(checkpoint, meta.at("sha256"));
    contents.loaded.label = {meta.at("case").get<std::string>(), meta.at("config_hash").get<std::string>()};
    contents.loaded.weights_hash = meta.at("weights_hash").get<std::string>();
    contents.loaded.state = training_state_of(meta.at("state"), meta_path.string());
    contents.parts = meta.at("parts");
  } catch (const Json::exception&) {
    throw DataError(fmt::format("{}: an entry is missing or has the wrong type", meta_path.string()));
  }
  contents.weights = load_tensors(checkpoint / kWeightsFile).tensors;
  contents.optimizer = load_tensors(checkpoint / kOptimizerFile).tensors;
  return contents;
}

void check_random(const Contents& contents, const fs::path& checkpoint) {
  const auto random = contents.optimizer.find(kRandomState);
  if (random == contents.optimizer.end()) {
    throw DataError(fmt::format("{}: no tensor '{}'", (checkpoint / kOptimizerFile).string(), kRandomState));
  }
  if (random->second.sizes() != random_state().sizes() || random->second.scalar_type() != torch::kByte) {
    throw DataError(fmt::format("{}: the random state is from another version of libtorch",
                                (checkpoint / kOptimizerFile).string()));
  }
}

void load_parts(const std::vector<StatePart*>& parts, const Json& values,
                const std::map<std::string, torch::Tensor>& tensors) {
  for (StatePart* part : parts) {
    const auto found = values.find(part->name());
    if (found == values.end()) throw DataError(fmt::format("holds no state of '{}'", part->name()));
    const std::string prefix = part->name() + ".";
    std::map<std::string, torch::Tensor> part_tensors;
    for (const auto& [name, tensor] : tensors) {
      if (name.rfind(prefix, 0) == 0) part_tensors.emplace(name.substr(prefix.size()), tensor);
    }
    part->load(*found, part_tensors);
  }
}

// Changes everything, in place.
void apply(const Trained& trained, const Contents& contents, const std::string& where) {
  load_into(trained.module.model(), contents.weights, where);
  trained.optimizer.load_state(contents.optimizer);
  load_parts(trained.parts, contents.parts, contents.optimizer);
  if (contents.random) set_random_state(*contents.random);
}

// Renames a checkpoint to a name that no reader takes for one. Returns the new path.
fs::path hide(const fs::path& checkpoint) {
  const fs::path hidden =
      checkpoint.parent_path() / fmt::format("{}old-{}-{}", kUnfinished, checkpoint.filename().string(), ::getpid());
  std::error_code error;
  fs::remove_all(hidden, error);
  fs::rename(checkpoint, hidden, error);
  if (error) throw InfrastructureError(fmt::format("{}: cannot remove: {}", checkpoint.string(), error.message()));
  return hidden;
}

void publish(const fs::path& unfinished, const fs::path& target) {
  // One that is there is damaged, and resuming passed over it; or the same step is saved twice.
  const fs::path old = fs::exists(target) ? hide(target) : fs::path();
  std::error_code error;
  fs::rename(unfinished, target, error);
  if (error) throw InfrastructureError(fmt::format("{}: cannot save: {}", target.string(), error.message()));
  sync_folder(target.parent_path());
  if (!old.empty()) fs::remove_all(old, error);
}

}  // namespace

std::string checkpoint_name(const TrainingState& state) {
  return fmt::format("epoch_{}_step_{}", state.epoch, state.global_step);
}

Snapshot take_snapshot(const Trained& trained, const TrainingState& state) {
  NamedTensors mine = trained.optimizer.state();
  Json parts = Json::object();
  for (const StatePart* part : trained.parts) {
    parts[part->name()] = part->values();
    for (auto& [name, tensor] : part->tensors()) mine.emplace_back(part->name() + "." + name, tensor);
  }
  Snapshot snapshot{.weights = copies_of(trained.exchange.gather_weights(trained.module)),
                    .optimizer = copies_of(trained.exchange.gather_state(mine)),
                    .parts = std::move(parts),
                    .placement = trained.exchange.placement(),
                    .state = state};
  for (auto& [name, tensor] : trained.exchange.gather_random(random_state())) {
    snapshot.optimizer.emplace_back(name, tensor);
  }
  return snapshot;
}

WrittenCheckpoint write_checkpoint(const fs::path& folder, const Snapshot& snapshot, const CheckpointLabel& label) {
  const std::string name = checkpoint_name(snapshot.state);
  const fs::path unfinished = folder / fmt::format("{}{}-{}", kUnfinished, name, ::getpid());
  make_folder(unfinished);
  WrittenCheckpoint written{
      .path = folder / name, .global_step = snapshot.state.global_step, .weights_hash = hash_of(snapshot.weights)};
  const std::map<std::string, std::string> metadata = {{"case", label.case_name},
                                                       {"weights_hash", written.weights_hash}};
  Json sums = {{kWeightsFile, save_tensors(unfinished / kWeightsFile, snapshot.weights, metadata)},
               {kOptimizerFile, save_tensors(unfinished / kOptimizerFile, snapshot.optimizer, metadata)}};
  if (!label.config.is_null()) {
    const std::string config = to_pretty(label.config);
    write_file_atomic(unfinished / kConfigFile, config);
    sums[kConfigFile] = sha256(config);
  }
  Json meta = {{"format", kFormat},
               {"case", label.case_name},
               {"config_hash", label.config_hash},
               {"weights_hash", written.weights_hash},
               {"sha256", sums},
               {"parts", snapshot.parts},
               {"state", to_json(snapshot.state)}};
  if (!snapshot.placement.is_null()) meta["placement"] = snapshot.placement;
  write_file_atomic(unfinished / kMetaFile, to_pretty(meta));
  publish(unfinished, written.path);
  return written;
}

void remove_checkpoint(const fs::path& checkpoint) {
  const fs::path hidden = hide(checkpoint);
  std::error_code ignored;  // what stays behind is removed when the run is resumed
  fs::remove_all(hidden, ignored);
}

namespace {

void refuse_other_config(const fs::path& checkpoint, const CheckpointLabel& label, const std::string& config_hash) {
  if (label.config_hash == config_hash) return;
  throw ConfigError(
      fmt::format("{} was made with another configuration (hash {:.12}, now {:.12}); choose another output folder, or "
                  "set Engine.save_load.ckpt_dir to start from it on purpose",
                  checkpoint.string(), label.config_hash, config_hash));
}

// The contents of a checkpoint as this process needs them. The writer reads; what it finds wrong is thrown everywhere.
Contents read_own_contents(const fs::path& checkpoint, const Topology& topology, StateExchange& exchange,
                           const std::optional<std::string>& config_hash) {
  Contents contents;
  std::string problem;
  if (topology.is_writer) {
    try {
      contents = read_contents(checkpoint);
      check_random(contents, checkpoint);
    } catch (const DataError& error) {
      problem = error.what();
    }
  }
  exchange.broadcast(problem);
  if (!problem.empty()) throw DataError(problem);
  Json head = {{"state", to_json(contents.loaded.state)},
               {"case", contents.loaded.label.case_name},
               {"config_hash", contents.loaded.label.config_hash},
               {"weights_hash", contents.loaded.weights_hash},
               {"parts", contents.parts}};
  std::string text = head.dump();
  exchange.broadcast(text);
  if (!topology.is_writer) {
    head = Json::parse(text);
    contents.loaded = {.state = training_state_of(head.at("state"), checkpoint.string()),
                       .label = {head.at("case").get<std::string>(), head.at("config_hash").get<std::string>()},
                       .weights_hash = head.at("weights_hash").get<std::string>()};
    contents.parts = head.at("parts");
  }
  // Before the tensors are looked at: those of another model or optimizer do not fit, which is not damage.
  if (config_hash) refuse_other_config(checkpoint, contents.loaded.label, *config_hash);
  contents.random = exchange.scatter_random(contents.optimizer, contents.loaded.state.global_step);
  contents.weights = exchange.scatter_weights(std::move(contents.weights));
  contents.optimizer = exchange.scatter_state(std::move(contents.optimizer));
  return contents;
}

// What this process has now, to go back to.
Contents present_contents(const Trained& trained) {
  Contents now;
  now.weights = by_name(copies_of(state_of(trained.module.model())));
  now.optimizer = by_name(copies_of(trained.optimizer.state()));
  now.parts = Json::object();
  for (const StatePart* part : trained.parts) {
    now.parts[part->name()] = part->values();
    for (auto& [name, tensor] : copies_of(part->tensors())) now.optimizer.emplace(part->name() + "." + name, tensor);
  }
  now.random = random_state();
  return now;
}

}  // namespace

LoadedCheckpoint load_checkpoint(const fs::path& checkpoint, const Trained& trained,
                                 const std::optional<std::string>& config_hash) {
  const Contents contents = read_own_contents(checkpoint, trained.topology, trained.exchange, config_hash);
  const Contents before = present_contents(trained);
  try {
    apply(trained, contents, (checkpoint / kWeightsFile).string());
  } catch (const std::exception& error) {
    apply(trained, before, "the weights before loading");
    const std::string text = error.what();
    const bool named = text.rfind(checkpoint.string(), 0) == 0;
    throw DataError(named ? text : fmt::format("{}: {}", (checkpoint / kOptimizerFile).string(), text));
  }
  trained.exchange.weights_changed();
  return contents.loaded;
}

std::string load_pretrained(const fs::path& path, Module& module, const Topology& topology, StateExchange& exchange) {
  const fs::path file = fs::is_directory(path) ? path / kWeightsFile : path;
  TensorsByName tensors;
  std::string problem;
  if (topology.is_writer) {
    try {
      tensors = module.from_published(load_tensors(file).tensors);
    } catch (const DataError& error) {
      problem = error.what();
    }
  }
  exchange.broadcast(problem);
  if (!problem.empty()) throw DataError(problem);
  tensors = exchange.scatter_weights(std::move(tensors));
  for (const auto& [name, target] : state_of(module.model())) {
    const auto found = tensors.find(name);  // others publish in fewer bits
    if (found != tensors.end() && found->second.is_floating_point())
      found->second = found->second.to(target.scalar_type());
  }
  load_into(module.model(), tensors, file.string());
  exchange.weights_changed();
  std::string hash = hash_of(exchange.gather_weights(module));
  exchange.broadcast(hash);
  return hash;
}

std::string load_pretrained(const fs::path& path, Module& module) {
  StateExchange one_process;
  return load_pretrained(path, module, Topology{}, one_process);
}

std::vector<fs::path> list_checkpoints(const fs::path& folder) {
  std::vector<std::pair<std::pair<int64_t, int64_t>, fs::path>> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const auto parts = parse_name(entry.path().filename().string());
    if (parts) found.emplace_back(std::pair(parts->step, parts->epoch), entry.path());
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  std::vector<fs::path> paths;
  for (auto& [position, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::optional<ResumedCheckpoint> load_newest_checkpoint(
    const fs::path& folder, const Trained& trained, const std::string& config_hash,
    const std::function<void(const fs::path&, const std::string&)>& on_damaged) {
  const bool reads = trained.topology.is_writer;
  if (reads) remove_unfinished(folder);
  const std::vector<fs::path> found = reads ? list_checkpoints(folder) : std::vector<fs::path>();
  for (size_t i = 0;; ++i) {
    std::string name = i < found.size() ? found[i].filename().string() : "";
    trained.exchange.broadcast(name);
    if (name.empty()) return std::nullopt;
    try {
      return ResumedCheckpoint{folder / name, load_checkpoint(folder / name, trained, config_hash)};
    } catch (const DataError& error) {
      on_damaged(folder / name, error.what());
    }
  }
}

}  // namespace assay
