// Where a training run is: everything a checkpoint must hold besides tensors. Plain values, written as JSON.
#pragma once

#include <cstdint>
#include <optional>

#include "base/json.h"

namespace assay {

struct TrainingState {
  // --- position
  int64_t epoch = 0;        // of the next batch, 0-based
  int64_t batch = 0;        // the next one in that epoch, 0-based
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

  // --- log window in progress: with it the log of a resumed run continues as if nothing had happened
  double window_loss = 0;
  int64_t window_steps = 0;

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
