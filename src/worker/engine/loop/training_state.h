// Where a training run is: everything a checkpoint must hold besides tensors. Plain values, written as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace assay {

// An evaluation that was among the best, and the checkpoint of that moment.
struct BestEvaluation {
  std::string checkpoint;  // "epoch_3_step_1200"
  int64_t global_step = 0;
  double value = 0;  // the target's metric
  bool operator==(const BestEvaluation&) const = default;
};

struct TrainingState {
  // --- position
  int64_t epoch = 0;  // of the next batch, 0-based
  int64_t batch = 0;  // the next one in that epoch, 0-based
  // Of that epoch, by all processes; batches of another size continue from here. nullopt: an older checkpoint does not
  // say, and its batches were as large as now.
  std::optional<int64_t> consumed_samples = 0;
  int64_t global_step = 0;  // optimizer updates done
  int64_t num_samples = 0;  // trained on

  // --- the last evaluation, and the best
  std::optional<int64_t> evaluated_at_step;
  std::optional<double> metric;  // the target's
  std::optional<double> eval_loss;
  std::optional<double> best_metric;
  std::optional<int64_t> best_epoch;
  bool converged = false;  // an evaluation reached the target
  std::optional<int64_t> converged_at_step;
  int64_t evaluations_without_better = 0;  // since best_metric was set
  std::vector<BestEvaluation> best;        // best first, at most Engine.save_load.keep_best

  // --- log window in progress: with it the log of a resumed run continues as if nothing had happened
  double window_loss = 0;
  int64_t window_steps = 0;      // with a finite loss
  int64_t window_found_inf = 0;  // skipped

  // --- losses of the last steps, oldest first, at most Engine.spike.window
  std::vector<double> recent_losses;

  // --- time spent up to here, in seconds, attempts that were continued included
  double end_to_end_s = 0;
  double init_s = 0;
  double train_s = 0;    // between TRAIN_START and TRAIN_END
  double no_eval_s = 0;  // the same without evaluations
  double compute_s = 0;  // forward, backward, optimizer

  bool operator==(const TrainingState&) const = default;
};

Json to_json(const TrainingState& state);
TrainingState training_state_of(const Json& value, const std::string& where);  // throws DataError

}  // namespace assay
