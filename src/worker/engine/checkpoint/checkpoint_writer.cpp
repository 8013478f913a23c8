#include "engine/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <chrono>

#include "base/files.h"
#include "device/threads.h"

namespace assay {

CheckpointWriter::CheckpointWriter(fs::path folder, CheckpointLabel label, Retention retention)
    : folder_(std::move(folder)), label_(std::move(label)), retention_(std::move(retention)) {}

void CheckpointWriter::start(Snapshot snapshot) {
  if (pending_.valid()) unseen_ = pending_.get();
  pending_ = std::async(std::launch::async, [this, snapshot = std::move(snapshot)] {
    compute_on_this_thread_alone();
    WrittenCheckpoint written = write_checkpoint(folder_, snapshot, label_);
    if (retention_.target && !snapshot.state.best.empty()) {
      write_best_list(folder_, snapshot.state, *retention_.target);
    }
    if (retention_.keep_last) rotate_checkpoints(folder_, snapshot.state, *retention_.keep_last);
    return written;
  });
}

std::optional<WrittenCheckpoint> CheckpointWriter::finished() {
  if (unseen_) return std::exchange(unseen_, std::nullopt);
  const bool ready = pending_.valid() && pending_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  return ready ? std::optional(pending_.get()) : std::nullopt;
}

std::optional<WrittenCheckpoint> CheckpointWriter::wait() {
  if (unseen_) return std::exchange(unseen_, std::nullopt);
  return pending_.valid() ? std::optional(pending_.get()) : std::nullopt;
}

void rotate_checkpoints(const fs::path& folder, const TrainingState& state, int64_t keep_last) {
  const std::vector<fs::path> all = list_checkpoints(folder);
  const auto newest = std::find(all.begin(), all.end(), folder / checkpoint_name(state));
  int64_t num_kept = 0;
  for (auto path = newest; path != all.end(); ++path) {
    if (num_kept++ < keep_last) continue;
    const std::string name = path->filename().string();
    const bool is_best = std::any_of(state.best.begin(), state.best.end(),
                                     [&](const BestEvaluation& best) { return best.checkpoint == name; });
    if (!is_best) remove_checkpoint(*path);
  }
}

void write_best_list(const fs::path& folder, const TrainingState& state, const Target& target) {
  Json list = Json::array();
  for (const BestEvaluation& best : state.best) {
    // A killed attempt may have removed one that this attempt, further back, still has to judge again.
    if (!fs::exists(folder / best.checkpoint)) continue;
    list.push_back(
        {{"checkpoint", best.checkpoint}, {"global_step", best.global_step}, {"value", json_number(best.value)}});
  }
  write_file_atomic(folder / "best.json", to_pretty({{"metric", target.metric},
                                                     {"goal", target.goal == Goal::Maximize ? "maximize" : "minimize"},
                                                     {"checkpoints", list}}));
}

}  // namespace assay
