// Checkpoints: a folder `epoch_<e>_step_<s>` with weights, optimizer and random state as safetensors, and meta.json
// with the position and the SHA-256 of every file. It appears under its name only when it is complete.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/module.h"
#include "engine/training_state.h"

namespace assay {

// What identifies the run a checkpoint belongs to.
struct CheckpointLabel {
  std::string case_name;
  std::string config_hash;
};

struct LoadedCheckpoint {
  TrainingState state;
  CheckpointLabel label;
  std::string weights_hash;
};

// "epoch_3_step_1200"
std::string checkpoint_name(const TrainingState& state);

// Writes `folder`/epoch_.._step_../ and returns its path; one of the same name is replaced. Throws InfrastructureError.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const Module& module,
                                      const Optimizer& optimizer, const TrainingState& state,
                                      const CheckpointLabel& label);

// Reads everything, checks it, then changes module, optimizer and the random generator. Throws DataError naming the
// file; then nothing was changed.
LoadedCheckpoint load_checkpoint(const std::filesystem::path& checkpoint, Module& module, Optimizer& optimizer);

// All checkpoints of a folder by name, newest (largest step) first. Does not look into them.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

// Loads the newest one that is whole. Each damaged one is passed to `on_damaged` with the reason and left where it is.
// Leftovers of an interrupted save are removed. nullopt when there is none.
struct ResumedCheckpoint {
  std::filesystem::path path;
  LoadedCheckpoint loaded;
};
std::optional<ResumedCheckpoint> load_newest_checkpoint(
    const std::filesystem::path& folder, Module& module, Optimizer& optimizer,
    const std::function<void(const std::filesystem::path&, const std::string&)>& on_damaged);

}  // namespace assay
