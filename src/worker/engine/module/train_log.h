// What a module prints and observers record of a training: one log every logging_freq steps, and one per evaluated
// batch.
#pragma once

#include <cstdint>
#include <optional>

namespace assay {

// What training_step_end gets, every logging_freq steps. Means are over the steps since the last log.
struct TrainLog {
  int64_t epoch = 0;  // 0-based
  int64_t num_epochs = 0;
  int64_t batch = 0;  // 1-based within the epoch
  int64_t num_batches = 0;
  int64_t global_step = 0;  // updates done
  double loss = 0;          // mean
  double learning_rate = 0;
  double batch_cost_s = 0;  // mean wall time per step
  double samples_per_s = 0;
  double units_per_s = 0;                    // the same in Module::sample_unit()s
  std::optional<double> mfu;                 // nullopt: the model's FLOPS or the device's peak are unknown
  std::optional<int64_t> peak_memory_bytes;  // largest resident size so far
  double data_s = 0;                         // mean time by phase
  double forward_s = 0;
  double backward_s = 0;
  double optimizer_s = 0;
  std::optional<double> comm_s;  // of these, waiting for other processes; nullopt: there are none
  double loss_scale = 1;
  int64_t found_inf = 0;  // steps skipped since the last log, since a gradient or the loss was not finite
};

struct EvalLog {
  const char* stage = "eval";  // "eval" or "test"
  int64_t epoch = 0;
  int64_t batch = 0;  // 1-based
  int64_t num_batches = 0;
  double loss = 0;  // of this batch
  double batch_cost_s = 0;
};

}  // namespace assay
