// The strategies that `assay verify parallel` proves equal to one process, and what it has to know of models: two
// tables. Knows configuration keys, not plans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/case.h"

namespace assay {

// One way to share a training run among processes. Degrees that are 1 do nothing.
struct ParallelStrategy {
  std::string name;  // "dp2xtp2"
  std::string what;  // for people
  int dp = 1;
  int sharding = 1;
  int stage = 1;  // of sharding
  int mp = 1;
  int pp = 1;
  int virtual_pp = 1;
  int micro_batches = 1;  // that a replica divides its batch into; pipelines need at least as many as they have stages
  bool sequence_parallel = false;
  bool recompute = false;

  int num_processes() const { return dp * sharding * mp * pp; }
  int num_replicas() const { return dp * sharding; }
};
const std::vector<ParallelStrategy>& strategies();
// Throws UsageError with the nearest name.
const ParallelStrategy& strategy_named(const std::string& name);

// The settings that make a case run by the strategy with so many samples a step, all processes together. Throws
// UsageError when they cannot be divided.
std::vector<Setting> settings_of(const ParallelStrategy& strategy, int64_t global_batch);

// What there is to know of a model, by Model.name.
struct ParallelModel {
  std::string name;
  bool transformer = false;
  bool recomputes = false;  // it is none, but has blocks that can be computed again
  // Statistics of a batch (batch norm), or a loss that is a mean over something else than samples, make a batch in
  // parts another batch: such a model is compared with one process that divides its batches likewise.
  bool whole_batch_matters = false;
  std::vector<std::string> no_dropout = {};  // settings
  std::vector<std::string> tiny = {};        // settings: 20 steps in about a second; empty: none known
};
// A model that is not in the table has no tiny size and is no transformer.
ParallelModel parallel_model(const std::string& name);

// Why a model has nothing to do with a strategy; "" when it has.
std::string not_applicable(const ParallelStrategy& strategy, const ParallelModel& model);

}  // namespace assay
