// The training loop, FleetX's EagerEngine: fit, evaluate, predict, save, load, export. It knows modules, loaders and
// checkpoints; it does not know models, datasets, how processes share the work or how a record is written.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "data/loader.h"
#include "engine/adapter/adapter.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/checkpoint_writer.h"
#include "engine/loop/observer.h"
#include "engine/module.h"
#include "engine/optimizer/updater.h"
#include "engine/options.h"
#include "engine/strategy.h"

namespace assay {

struct EngineServices {
  std::filesystem::path checkpoint_folder;  // empty: no checkpoints
  CheckpointLabel label{};
  std::optional<Target> target;
  std::vector<EngineObserver*> observers;                       // borrowed
  std::function<bool()> stop_requested = [] { return false; };  // asked after every step
  Stopwatch started{};                                          // when the process, and so the run, began
  std::optional<double> peak_flops{};  // of the device, per second, in the precision of the run; nullopt: unknown
  Adapter* adapter = nullptr;          // the vendor's, borrowed; null: nothing is replaced
  Strategy* strategy = nullptr;        // of several processes, borrowed; null: there is one
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
  // options say and at the end. Throws NonFiniteError or LossSpikeError before the update that would have spread it;
  // InterruptedError after saving, when a stop was asked for. All checkpoints are on disk when it returns or throws.
  void fit(Loader& train, Loader* eval);
  Evaluation evaluate(Loader& loader, std::optional<int64_t> max_batches);
  Predictions predict(Loader& loader, std::optional<int64_t> max_batches);

  // Copies this moment and writes it in the background as a checkpoint under the checkpoint folder. What goes wrong
  // there is thrown by the next step, the next save or finish_saving().
  void save();
  // Waits until the checkpoint in work is on disk.
  void finish_saving();
  void load(const std::filesystem::path& checkpoint);
  // Continues from the newest valid checkpoint of the checkpoint folder, or, when it has none, from Engine.save_load.
  // ckpt_dir. False when there is nothing to continue; then Engine.save_load.pretrained is loaded, if it is set. Throws
  // ConfigError when the folder's checkpoint was made with another configuration.
  bool resume();
  // The weights that a run ends with are their average, when there is one (Optimizer.ema).
  void adopt_average() { optimizer_->adopt_average(); }
  // Calls the exporter with the network in evaluation mode.
  void export_model(const std::function<void(Module&)>& exporter);

  const TrainingState& state() const { return state_; }
  // Tells every observer.
  void notify(const char* event, const Json& data = Json::object());
  // Model FLOPS achieved over peak FLOPS, for so many samples in so many seconds; nullopt: unknown.
  std::optional<double> mfu(int64_t num_samples, double seconds) const;
  // All weights, by name, on the process that writes; nothing on others.
  NamedTensors whole_weights() { return strategy_.state().gather_weights(module_); }
  // How far into the process the times of state() reach.
  double measured_until_s() const { return measured_until_s_; }
  Module& module() const { return module_; }
  Updater& optimizer() { return *optimizer_; }

 private:
  void restore_position(const Loader& train);
  void run_training(Loader& train, Loader* eval);
  void train_epoch(Loader& train, Loader* eval);
  void train_step(Batch batch);
  std::vector<MicroBatch> micro_batches(const Batch& batch);
  double forward_backward(const Batch& batch);
  double run_micro_batches(const std::vector<MicroBatch>& parts);
  void backward(const torch::Tensor& loss, double share);
  void stop_at_non_finite(double loss) const;
  void convert_model(Adapter& adapter);
  bool update_weights(double loss, double learning_rate);
  Schedule::Position schedule_position(int64_t num_samples) const;
  std::string where() const;
  void after_step(Loader& train, Loader* eval);
  void end_epoch(Loader* eval, double seconds);
  void log_window(const Loader& train);
  void evaluate_and_judge(Loader& eval);
  void save_if_new();
  void adopt(const std::filesystem::path& checkpoint, const LoadedCheckpoint& loaded);
  void stop_if_asked();
  void report_unused_operators();
  bool finished() const;
  void notify_step(const char* event, const Json& data);
  void validate_options(const Loader* eval) const;
  void stop_at_spike(double loss) const;
  void judge(const Evaluation& evaluation);
  bool update_best(double value);
  Trained trained() { return {module_, *optimizer_, topology_, strategy_.state(), parts_}; }
  Adapter& adapter() { return services_.adapter ? *services_.adapter : default_adapter_; }
  void announce(const std::optional<WrittenCheckpoint>& written);
  void add_train_time();
  EvalSums run_batches(Loader& loader, std::optional<int64_t> max_batches, bool test,
                       const std::function<void(const Batch&, const EvalStep&)>& on_step);

  // Constant after construction.
  Module& module_;
  EngineOptions options_;
  EngineServices services_;
  // The run.
  std::vector<EngineObserver*> step_observers_;  // those that want the events of every step
  std::optional<SpikeGuard> spike_guard_;
  Adapter default_adapter_;
  Precision precision_;
  OneProcess one_process_;
  Strategy& strategy_;
  const Topology topology_;
  std::unique_ptr<Updater> optimizer_;
  std::unique_ptr<LowPrecisionWeights> low_weights_;  // null: the network computes with the optimizer's weights
  std::vector<StatePart*> parts_;                     // what else belongs into a checkpoint
  std::optional<Schedule> schedule_;
  TrainingState state_;
  int64_t num_steps_ = 0;                                      // to be done in all
  std::optional<std::pair<int64_t, int64_t>> saved_position_;  // epoch and step of the last checkpoint
  std::unique_ptr<CheckpointWriter> writer_;                   // from the first save on
  bool stop_agreed_ = false;                                   // a process was asked to stop, and all of them know
  bool operators_told_ = false;                                // which of the custom lists did not run
  bool ended_early_ = false;  // at the target, or because evaluations stopped getting better
  double last_loss_ = 0;      // of the last step
  struct Window {             // times since the last log line
    double total_s = 0, data_s = 0, forward_s = 0, backward_s = 0, optimizer_s = 0, comm_s = 0;
    int64_t samples = 0;
    double learning_rate = 0;  // of the last step
    int64_t steps = 0;         // timed; fewer than state_.window_steps right after resuming
  } window_;
  Stopwatch train_watch_;            // since train_s was last brought up to date
  double eval_s_ = 0;                // of evaluations since then
  double earlier_end_to_end_s_ = 0;  // of the attempts before this one
  double earlier_init_s_ = 0;
  double measured_until_s_ = 0;
};

}  // namespace assay
