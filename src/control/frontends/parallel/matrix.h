// The plan of `assay verify parallel`: one case, trained in one process and by each strategy, in each precision, and
// the question whether all of them trained the same.
#pragma once

#include <string>
#include <vector>

#include "config/case.h"
#include "frontends/parallel/strategies.h"
#include "plan/plan.h"

namespace assay {

struct MatrixRequest {
  ResolveRequest base;                  // the case, with the user's settings
  std::vector<std::string> strategies;  // names; empty: all
  std::vector<std::string> precisions;  // "float64", "float32"
  int64_t num_steps = 20;
  bool tiny = false;
  bool keep = false;                        // checkpoints of what passed too
  std::optional<double> time_limit_s = {};  // of each training
};

struct MatrixPlan {
  Plan plan;
  ResolvedCase one_process;  // to see whether its data are there
};

// How far apart trainings may be, by precision; see verify/training_comparison.h for what that means. Sums taken in
// another order differ by some units in the last place (1e-16, 6e-8), and twenty steps multiply that.
double max_relative(const std::string& precision);  // throws UsageError for an unknown one

// Steps one-process-<precision>, <strategy>-<precision>, and one verify step with a verdict for each strategy and
// precision. Throws UsageError and what resolve_case() throws.
MatrixPlan matrix_plan(const MatrixRequest& request);

// A table for people: name, processes, what, and the keys that are set.
Json strategies_json();

}  // namespace assay
