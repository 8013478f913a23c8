// The training loop, FleetX's EagerEngine for one process: fit, evaluate, predict, save, load, export. It knows
// modules, loaders and checkpoints; it does not know models, datasets, processes or how a record is written.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "data/loader.h"
#include "engine/checkpoint.h"
#include "engine/module.h"
#include "engine/observer.h"
#include "engine/options.h"

namespace assay {

// An event of ours: a checkpoint that resuming passed over; data {checkpoint, reason}.
inline constexpr char kDamagedCheckpoint[] = "DAMAGED_CHECKPOINT";

struct EngineServices {
  std::filesystem::path checkpoint_folder;  // empty: no checkpoints
  CheckpointLabel label{};
  std::optional<Target> target;
  std::vector<EngineObserver*> observers;                       // borrowed
  std::function<bool()> stop_requested = [] { return false; };  // asked after every step
  Stopwatch started{};                                          // when the process, and so the run, began
};

struct Predictions {
  torch::Tensor outputs;  // [N, ...] in the order of the data
  torch::Tensor labels;   // [N]
  Evaluation evaluation;
};

// Not thread-safe. The module must have been initialised and must outlive the engine.
class Engine {
 public:
  Engine(Module& module, const EngineOptions& options, EngineServices services);

  // Trains until the options say stop, from wherever the state is. Evaluates on `eval` (may be null) as often as the
  // options say and at the end. Throws NonFiniteError before the update that would have spread it; InterruptedError
  // after saving, when a stop was asked for.
  void fit(Loader& train, Loader* eval);
  Evaluation evaluate(Loader& loader, std::optional<int64_t> max_batches);
  Predictions predict(Loader& loader, std::optional<int64_t> max_batches);

  // A checkpoint of this moment under the checkpoint folder; returns its path.
  std::filesystem::path save();
  void load(const std::filesystem::path& checkpoint);
  // Continues from the newest valid checkpoint of the checkpoint folder, or, when it has none, from Engine.save_load.
  // ckpt_dir. False when there is nothing to continue. Throws ConfigError when the folder's checkpoint was made with
  // another configuration.
  bool resume();
  // Calls the exporter with the network in evaluation mode.
  void export_model(const std::function<void(Module&)>& exporter);

  const TrainingState& state() const { return state_; }
  // How far into the process the times of state() reach.
  double measured_until_s() const { return measured_until_s_; }
  Module& module() { return module_; }
  Optimizer& optimizer() { return *optimizer_; }

 private:
  void train_epoch(Loader& train, Loader* eval);
  void train_step(Batch batch);
  double forward_backward(const Batch& batch);
  void after_step(Loader& train, Loader* eval);
  void end_epoch(Loader* eval, double seconds);
  void log_window(const Loader& train);
  void evaluate_and_judge(Loader& eval);
  void save_if_new();
  void adopt(const std::filesystem::path& checkpoint, const TrainingState& state);
  void stop_if_asked();
  bool finished() const;
  void notify(const char* event, const Json& data = Json::object());
  void add_train_time();
  EvalSums run_batches(Loader& loader, std::optional<int64_t> max_batches, bool test,
                       const std::function<void(const Batch&, const EvalStep&)>& on_step);

  // Constant after construction.
  Module& module_;
  EngineOptions options_;
  EngineServices services_;
  // The run.
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Schedule> schedule_;
  TrainingState state_;
  int64_t num_steps_ = 0;                                      // to be done in all
  std::optional<std::pair<int64_t, int64_t>> saved_position_;  // epoch and step of the last checkpoint
  bool stopped_at_target_ = false;
  struct Window {  // times since the last log line
    double total_s = 0, data_s = 0, forward_s = 0, backward_s = 0, optimizer_s = 0;
    int64_t samples = 0;
    int64_t steps = 0;  // timed; fewer than state_.window_steps right after resuming
  } window_;
  Stopwatch train_watch_;            // since train_s was last brought up to date
  double eval_s_ = 0;                // of evaluations since then
  double earlier_end_to_end_s_ = 0;  // of the attempts before this one
  double earlier_init_s_ = 0;
  double measured_until_s_ = 0;
};

}  // namespace assay
