// The options of a training run, read from the sections Global, Engine and Optimizer with the names that FleetX's users
// know. What this engine cannot do yet is refused, not ignored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "config/worker_config.h"
#include "engine/loop/spike_guard.h"
#include "engine/optimizer/optimizer.h"
#include "engine/optimizer/schedule.h"
#include "engine/precision/precision.h"

namespace assay {

struct EngineOptions {
  enum class RunMode { Step, Epoch };
  RunMode run_mode = RunMode::Step;                 // the unit of eval_freq
  int64_t num_epochs = 1;                           // Engine.num_train_epochs
  std::optional<int64_t> max_steps;                 // nullopt: until the last epoch ends
  int64_t accumulate_steps = 1;                     // micro-batches an update
  int64_t logging_freq = 10;                        // steps
  std::optional<int64_t> eval_freq;                 // steps or epochs; nullopt: only at the end
  std::optional<int64_t> eval_iters;                // batches; nullopt: all
  std::optional<int64_t> test_iters;                // batches; nullopt: all
  PrecisionOptions precision;                       // Engine.precision, Engine.mix_precision
  bool stop_at_target = false;                      // end as soon as an evaluation reaches the target
  std::optional<int64_t> save_steps;                // steps between checkpoints
  std::optional<int64_t> save_epoch;                // epochs between checkpoints
  std::optional<int64_t> early_stop;                // evaluations without a better one; nullopt: never
  std::optional<int64_t> keep_last;                 // checkpoints to keep; nullopt: all
  std::optional<int64_t> keep_best;                 // checkpoints of the best evaluations to keep besides
  std::optional<std::filesystem::path> ckpt_dir;    // a checkpoint to start from
  std::optional<std::filesystem::path> pretrained;  // weights to start from, and nothing else
  std::optional<SpikeGuard::Options> spike;         // stop when the loss jumps; nullopt: never
  bool tensorboard = false;                         // write TensorBoard event files too
  struct ProfileWindow {
    int64_t first_step = 1;                    // of updates, counted from 0
    int64_t end_step = 5;                      // the one after the last
    std::filesystem::path folder = "profile";  // relative to the output folder
  };
  std::optional<ProfileWindow> profile;  // nullopt: no profile
  int64_t seed = 0;                      // Global.seed
  int64_t local_batch_size = 1;          // Global.local_batch_size: samples a step and replica
  int64_t num_replicas = 1;              // processes with other samples: Distributed.dp_degree * sharding_degree
  std::string device = "cpu";            // Global.device: a name of the device registry
  std::optional<std::string> plugin;     // Global.plugin
  Optimizer::Options optimizer;
  Schedule::Options schedule;        // decay_steps 0: all steps of the run
  double warmup_rate = 0;            // warm-up as a share of decay_steps; used when warmup_steps is 0
  bool schedule_by_samples = false;  // Optimizer.lr.unit: decay_steps, warmup_steps and milestones count samples
};

// Throws ConfigError naming file, line and key.
EngineOptions read_engine_options(const WorkerConfig& config);

// With decay_steps and warmup_steps filled in for a run of so many updates.
Schedule make_schedule(const EngineOptions& options, int64_t num_steps);

}  // namespace assay
