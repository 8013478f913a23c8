// How long the steps of a training took, from its records: as the program says, or else from the time between its
// records. Evaluations and restarts are no steps.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "record/record.h"

namespace assay {

struct StepSeconds {
  std::vector<double> seconds;  // one a record, in order, warm-up included
  std::string source;      // "train.data_time + train.compute_time", "batch_cost", "time between records"; "": none
  int64_t steps_each = 0;  // how many steps a record stands for (the usual number); 0: unknown
};

// Of the records of one rank, in the order they were written, without voided ones (run/evidence.h).
StepSeconds step_seconds(const std::vector<Record>& records);

// {n, warmup, mean, p50, p90, p99, max, jitter, source, steps_each}; null when no step was timed.
Json step_time_json(const StepSeconds& steps);

// The throughput that the program logged while it trained: the harmonic mean of train.ips after the warm-up, which is
// all samples over all time when the records are equally far apart. nullopt: it logged none.
std::optional<double> logged_throughput(const std::vector<Record>& records);

}  // namespace assay
