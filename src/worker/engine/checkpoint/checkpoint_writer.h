// Writes checkpoints while training goes on: one at a time, each in a thread of its own, and afterwards removes those
// that are no longer wanted. What it is given is a copy, so it shares nothing with the run.
#pragma once

#include <filesystem>
#include <future>
#include <optional>
#include <string>

#include "config/case.h"
#include "engine/checkpoint/checkpoint.h"

namespace assay {

// Which checkpoints stay. The best ones are those that the state of the newest one lists.
struct Retention {
  std::optional<int64_t> keep_last;  // nullopt: all
  std::optional<Target> target;      // by which the best are chosen; for best.json
};

// Not thread-safe: one thread calls it.
class CheckpointWriter {
 public:
  CheckpointWriter(std::filesystem::path folder, CheckpointLabel label, Retention retention);
  // The destructor waits for the checkpoint in work; its error is lost then.

  // Waits for the one before, then begins to write this one. Throws what the one before failed with.
  void start(Snapshot snapshot);
  // The checkpoint that was finished since the last call, if there is one. Throws what it failed with.
  std::optional<WrittenCheckpoint> finished();
  // The same, but waits for it.
  std::optional<WrittenCheckpoint> wait();
  // Waits and keeps the outcome for finished() or wait(): for when another error is already on its way.
  void settle() const {
    if (pending_.valid()) pending_.wait();
  }

 private:
  // Constant after construction.
  std::filesystem::path folder_;
  CheckpointLabel label_;
  Retention retention_;
  // The one in work. A future of std::async waits in its destructor.
  std::future<WrittenCheckpoint> pending_;
  std::optional<WrittenCheckpoint> unseen_;  // finished while start() waited for it
};

// Removes the checkpoints of `folder` that are older than `state`, not among its last `keep_last` and not among its
// best. Those beyond `state` are left alone: they are damaged ones that resuming passed over.
void rotate_checkpoints(const std::filesystem::path& folder, const TrainingState& state, int64_t keep_last);

// best.json: metric, goal, and the best checkpoints that exist, best first.
void write_best_list(const std::filesystem::path& folder, const TrainingState& state, const Target& target);

}  // namespace assay
