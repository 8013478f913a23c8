#include "engine/checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "engine/tensor_file.h"

namespace assay {

namespace {

constexpr int kFormat = 1;
constexpr char kWeightsFile[] = "model.safetensors";
constexpr char kOptimizerFile[] = "optimizer.safetensors";
constexpr char kMetaFile[] = "meta.json";
constexpr char kRandomState[] = "random.cpu";  // beside the optimizer's tensors
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
    if (entry.path().filename().string().rfind(kUnfinished, 0) == 0) fs::remove_all(entry.path(), ignored);
  }
}

struct Contents {
  LoadedCheckpoint loaded;
  LoadedTensors weights;
  LoadedTensors optimizer;
};

Contents read_contents(const fs::path& checkpoint) {
  const fs::path meta_path = checkpoint / kMetaFile;
  const Json meta = read_json_file(meta_path);
  Contents contents;
  try {
    if (meta.at("format").get<int>() != kFormat) {
      throw DataError(fmt::format("{}: format {}, this program reads {}", meta_path.string(),
                                  meta.at("format").get<int>(), kFormat));
    }
    for (const char* name : {kWeightsFile, kOptimizerFile}) {
      const auto expected = meta.at("sha256").at(name).get<std::string>();
      if (sha256_file(checkpoint / name) != expected) {
        throw DataError(fmt::format("{}: its content is not what was saved", (checkpoint / name).string()));
      }
    }
    contents.loaded.label = {meta.at("case").get<std::string>(), meta.at("config_hash").get<std::string>()};
    contents.loaded.weights_hash = meta.at("weights_hash").get<std::string>();
    contents.loaded.state = training_state_of(meta.at("state"), meta_path.string());
  } catch (const Json::exception&) {
    throw DataError(fmt::format("{}: an entry is missing or has the wrong type", meta_path.string()));
  }
  contents.weights = load_tensors(checkpoint / kWeightsFile);
  contents.optimizer = load_tensors(checkpoint / kOptimizerFile);
  return contents;
}

}  // namespace

std::string checkpoint_name(const TrainingState& state) {
  return fmt::format("epoch_{}_step_{}", state.epoch, state.global_step);
}

fs::path save_checkpoint(const fs::path& folder, const Module& module, const Optimizer& optimizer,
                         const TrainingState& state, const CheckpointLabel& label) {
  const fs::path target = folder / checkpoint_name(state);
  const fs::path unfinished = folder / fmt::format("{}{}-{}", kUnfinished, target.filename().string(), ::getpid());
  make_folder(unfinished);
  const NamedTensors weights = state_of(module.model());
  const std::string weights_hash = hash_of(weights);
  NamedTensors optimizer_state = optimizer.state();
  optimizer_state.emplace_back(kRandomState, random_state());
  const std::map<std::string, std::string> metadata = {{"case", label.case_name}, {"weights_hash", weights_hash}};
  Json meta = {{"format", kFormat},
               {"case", label.case_name},
               {"config_hash", label.config_hash},
               {"weights_hash", weights_hash},
               {"sha256",
                {{kWeightsFile, save_tensors(unfinished / kWeightsFile, weights, metadata)},
                 {kOptimizerFile, save_tensors(unfinished / kOptimizerFile, optimizer_state, metadata)}}},
               {"state", to_json(state)}};
  write_file_atomic(unfinished / kMetaFile, to_pretty(meta));
  std::error_code error;
  if (fs::exists(target)) {
    // A damaged one that resuming passed over, or the same step saved twice; the next resume removes it.
    const fs::path old = folder / fmt::format("{}old-{}-{}", kUnfinished, target.filename().string(), ::getpid());
    fs::rename(target, old, error);
    fs::rename(unfinished, target, error);
    std::error_code ignored;
    fs::remove_all(old, ignored);
  } else {
    fs::rename(unfinished, target, error);
  }
  if (error) throw InfrastructureError(fmt::format("{}: cannot save: {}", target.string(), error.message()));
  sync_folder(folder);
  return target;
}

LoadedCheckpoint load_checkpoint(const fs::path& checkpoint, Module& module, Optimizer& optimizer) {
  Contents contents = read_contents(checkpoint);
  const auto random = contents.optimizer.tensors.find(kRandomState);
  if (random == contents.optimizer.tensors.end()) {
    throw DataError(fmt::format("{}: no tensor '{}'", (checkpoint / kOptimizerFile).string(), kRandomState));
  }
  const torch::Tensor random_before = random_state();
  if (random->second.sizes() != random_before.sizes() || random->second.scalar_type() != torch::kByte) {
    throw DataError(fmt::format("{}: the random state is of another libtorch", (checkpoint / kOptimizerFile).string()));
  }
  const std::map<std::string, torch::Tensor> before = [&] {
    std::map<std::string, torch::Tensor> copies;
    for (const auto& [name, tensor] : state_of(module.model())) copies.emplace(name, tensor.detach().clone());
    return copies;
  }();
  load_into(module.model(), contents.weights.tensors, (checkpoint / kWeightsFile).string());
  try {
    optimizer.load_state(contents.optimizer.tensors, contents.loaded.state.global_step);
    set_random_state(random->second);
  } catch (const std::exception& error) {
    load_into(module.model(), before, "the weights before loading");
    throw DataError(fmt::format("{}: {}", (checkpoint / kOptimizerFile).string(), error.what()));
  }
  return contents.loaded;
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
    const fs::path& folder, Module& module, Optimizer& optimizer,
    const std::function<void(const fs::path&, const std::string&)>& on_damaged) {
  remove_unfinished(folder);
  for (const fs::path& path : list_checkpoints(folder)) {
    try {
      return ResumedCheckpoint{path, load_checkpoint(path, module, optimizer)};
    } catch (const DataError& error) {
      on_damaged(path, error.what());
    }
  }
  return std::nullopt;
}

}  // namespace assay
