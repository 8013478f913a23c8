// Two trainings of one model, step by step: the losses of their records and the weights of their checkpoints. One is
// the baseline, for example in one process, the other what is to be proven equal to it. Knows files, not strategies.
//
// How far apart two numbers are:
//   a loss      |a-b| / |b|
//   a parameter max|a-b| / max(max|b|, kNoiseShare * r), over its elements; r is the root mean square of all weights of
//               the baseline at that step. Without the second term a parameter whose true gradient is 0, such as the
//               bias of attention's keys, would be compared in nothing but rounding noise, and noise has no relative
//               accuracy.
// Something that is not finite is infinitely far from everything, also from itself.
//
// The comparison is JSON, small, and all that a verdict needs, so checkpoints may go once it is written:
//   {"schema", "steps": N,
//    "losses":  [{"step", "measured", "baseline", "relative"}, ...],
//    "weights": [{"step", "parameter", "position", "measured", "baseline", "relative", "ranks"}, ...],
//    "replicas": [{"step", "parameter", "rank"}, ...]}
// Each entry of "weights" is the parameter that is farthest apart at its step, and which ranks hold that element, [] if
// unknown. An entry with "missing" says instead what is not there. "replicas" are the REPLICA_DIFFERS events.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "record/record.h"
#include "verify/evidence.h"
#include "verify/verdict.h"

namespace assay {

inline constexpr double kNoiseShare = 0.01;

// Training losses by global step; of a step that was logged twice the later one. Expects records without voided ones,
// as Evidence gives them.
std::map<int64_t, double> losses_by_step(const std::vector<Record>& records);

// The folders of two steps, relative to the run folder, each with records and checkpoints, and how many training steps
// both have to have.
struct TwoTrainings {
  std::string measured;
  std::string baseline;
  int64_t num_steps = 0;
};
// Throws InvalidError when the baseline is not complete, DataError for damaged files.
Json compare_trainings(const Evidence& evidence, const TwoTrainings& trainings);

// Pass when no loss and no parameter of any step is farther apart than that, nothing is missing and no replicas differ.
// Otherwise the reason names the first step that differs, the parameter, the position in it, and the rank.
Verdict judge_comparison(const Json& comparison, double max_relative);

}  // namespace assay
