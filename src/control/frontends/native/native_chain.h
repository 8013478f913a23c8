// Plans for native cases: one training, or the whole chain from training to the verdict about the exported model.
#pragma once

#include <optional>

#include "config/case.h"
#include "plan/plan.h"

namespace assay {

struct ChainLimits {
  std::optional<double> train_s;
  std::optional<double> other_s;
};

// train; of a job over the nodes of the case key, the part of this node. Only the node of rank 0 has weights to show.
Plan train_plan(const ResolvedCase& resolved, const ChainLimits& limits = {}, int node_rank = 0);
// train -> evaluate -> export -> infer -> verify
Plan chain_plan(const ResolvedCase& resolved, const ChainLimits& limits = {});

// How many of a plan's training ranks are parameter servers, beside the trainers of the case key. Plans of a case with
// Distributed.ps.mode have one without this call. Throws ConfigError when the case wants none, or there are several
// nodes.
void set_servers(Plan& plan, const ResolvedCase& resolved, int num_servers);

// Distributed.max_restarts of the case.
int max_restarts(const ResolvedCase& resolved);

// Before anything starts: the case is native, and its data set is there with every file. Throws ConfigError or
// DataError that says what to do.
void check_ready(const ResolvedCase& resolved);

}  // namespace assay
