// The parts of the engine that save a run and continue it.
#include <fmt/format.h>

#include "base/error.h"
#include "engine/loop/engine.h"
#include "record/keys.h"

namespace assay {

void Engine::save() {
  ASSAY_CHECK(!services_.checkpoint_folder.empty(), "the engine has no checkpoint folder");
  if (!writer_) {
    writer_ =
        std::make_unique<CheckpointWriter>(services_.checkpoint_folder, services_.label,
                                           Retention{.keep_last = options_.keep_last, .target = services_.target});
  }
  add_train_time();
  saved_position_ = std::pair(state_.epoch, state_.global_step);
  Snapshot snapshot = take_snapshot(trained(), state_);
  if (!topology_.is_writer) return;
  writer_->start(std::move(snapshot));
  announce(writer_->finished());
}

void Engine::finish_saving() {
  while (writer_) {
    const std::optional<WrittenCheckpoint> written = writer_->wait();
    if (!written) return;
    announce(written);
  }
}

void Engine::announce(const std::optional<WrittenCheckpoint>& written) {
  if (!written) return;
  notify(keys::kCheckpoint, {{"checkpoint", written->path.string()},
                             {keys::kGlobalStep, written->global_step},
                             {"weights_hash", written->weights_hash}});
}

void Engine::load(const fs::path& checkpoint) { adopt(checkpoint, load_checkpoint(checkpoint, trained())); }

void Engine::adopt(const fs::path& checkpoint, const LoadedCheckpoint& loaded) {
  state_ = loaded.state;
  earlier_end_to_end_s_ = state_.end_to_end_s;
  earlier_init_s_ = state_.init_s;
  notify(keys::kResumed, {{keys::kGlobalStep, state_.global_step},
                          {"epoch", state_.epoch},
                          {"batch", state_.batch},
                          {"checkpoint", checkpoint.string()},
                          {"weights_hash", loaded.weights_hash}});
}

bool Engine::resume() {
  const auto on_damaged = [&](const fs::path& path, const std::string& reason) {
    notify(keys::kDamagedCheckpoint, {{"checkpoint", path.string()}, {"reason", reason}});
  };
  if (!services_.checkpoint_folder.empty()) {
    const auto found =
        load_newest_checkpoint(services_.checkpoint_folder, trained(), services_.label.config_hash, on_damaged);
    if (found) {
      adopt(found->path, found->loaded);
      saved_position_ = std::pair(state_.epoch, state_.global_step);
      return true;
    }
  }
  if (options_.ckpt_dir) {
    load(*options_.ckpt_dir);
    return true;
  }
  if (options_.pretrained) {
    const std::string hash = load_pretrained(*options_.pretrained, module_, topology_, strategy_.state());
    notify(keys::kPretrained, {{"path", options_.pretrained->string()}, {"weights_hash", hash}});
  }
  return false;
}

void Engine::save_if_new() {
  if (!services_.checkpoint_folder.empty() && saved_position_ != std::pair(state_.epoch, state_.global_step)) save();
}

void Engine::stop_if_asked() {
  const bool stop = topology_.is_alone ? services_.stop_requested() : stop_agreed_;
  if (!stop || finished()) return;
  if (services_.checkpoint_folder.empty()) {
    throw InterruptedError(fmt::format("stopped after step {} of {}", state_.global_step, num_steps_));
  }
  save_if_new();
  finish_saving();
  throw InterruptedError(fmt::format("stopped after step {} of {}; saved {}: the same command continues from there",
                                     state_.global_step, num_steps_,
                                     (services_.checkpoint_folder / checkpoint_name(state_)).string()));
}

}  // namespace assay
