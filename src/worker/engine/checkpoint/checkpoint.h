// Checkpoints: a folder `epoch_<e>_step_<s>` with weights, optimizer and random state as safetensors, the effective
// configuration, and meta.json with the position and the SHA-256 of every file. It appears under its name only when it
// is complete. Saving has two parts: a snapshot, which copies the tensors, and writing it, which any thread may do.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/state_part.h"
#include "engine/loop/training_state.h"
#include "engine/module.h"
#include "engine/strategy/state_exchange.h"
#include "engine/strategy/topology.h"

namespace assay {

// What identifies the run a checkpoint belongs to.
struct CheckpointLabel {
  std::string case_name;
  std::string config_hash;
  Json config = nullptr;  // the effective configuration, kept as config.json; null: not kept
};

// Everything with tensors that a checkpoint holds. Borrowed.
struct Trained {
  Module& module;
  Optimizer& optimizer;
  const Topology& topology;
  StateExchange& exchange;
  std::vector<StatePart*> parts{};
};

// A copy of one moment: what happens to the run afterwards does not change it.
struct Snapshot {
  NamedTensors weights;
  NamedTensors optimizer;  // with the tensors of the parts and the random state
  Json parts = Json::object();
  Json placement = nullptr;  // StateExchange::placement()
  TrainingState state;
};
// With several processes all of them call it, and the writer's is the one of the whole run.
Snapshot take_snapshot(const Trained& trained, const TrainingState& state);

struct WrittenCheckpoint {
  std::filesystem::path path;
  int64_t global_step = 0;
  std::string weights_hash;
};
// "epoch_3_step_1200"
std::string checkpoint_name(const TrainingState& state);
// Writes `folder`/epoch_.._step_../; one of the same name is replaced. Uses no compute threads of libtorch. Throws
// InfrastructureError.
WrittenCheckpoint write_checkpoint(const std::filesystem::path& folder, const Snapshot& snapshot,
                                   const CheckpointLabel& label);

struct LoadedCheckpoint {
  TrainingState state;
  CheckpointLabel label;
  std::string weights_hash;
};
// Reads everything, checks it, then changes what was trained and the random generator. Throws DataError naming the
// file; then nothing was changed. With several processes the writer reads, and all of them call it. Throws ConfigError
// when a `config_hash` is given and the checkpoint's is another, whether its tensors would fit or not.
LoadedCheckpoint load_checkpoint(const std::filesystem::path& checkpoint, const Trained& trained,
                                 const std::optional<std::string>& config_hash = std::nullopt);

// All checkpoints of a folder by name, newest (largest step) first. Does not look into them.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

// Loads the newest one that is whole. Each damaged one is passed to `on_damaged` with the reason and left where it is.
// Leftovers of an interrupted save are removed. nullopt when there is none. Throws ConfigError when it was made with
// another configuration.
struct ResumedCheckpoint {
  std::filesystem::path path;
  LoadedCheckpoint loaded;
};
std::optional<ResumedCheckpoint> load_newest_checkpoint(
    const std::filesystem::path& folder, const Trained& trained, const std::string& config_hash,
    const std::function<void(const std::filesystem::path&, const std::string&)>& on_damaged);

// Makes a checkpoint disappear at once, then deletes it: a kill in between leaves nothing that looks like a damaged
// one.
void remove_checkpoint(const std::filesystem::path& checkpoint);

// Weights and nothing else, from a safetensors file or a checkpoint folder. Returns their hash. Throws DataError. With
// several processes the writer reads, and all of them call it.
std::string load_pretrained(const std::filesystem::path& path, Module& module, const Topology& topology,
                            StateExchange& exchange);
std::string load_pretrained(const std::filesystem::path& path, Module& module);

}  // namespace assay
