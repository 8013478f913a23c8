// The checks of a verify step. Each is data in the plan, and reads nothing but the run folder.
//
//   {"type": "loss_falls", "records": FILE}
//       every training loss is finite, and the mean of the last tenth is below that of the first tenth
//   {"type": "target", "records": FILE, "key": KEY, "goal": "maximize"|"minimize", "value": X}
//       KEY of the last result in FILE reaches X
//   {"type": "same_predictions", "measured": FILE, "baseline": FILE, "tensor": NAME, "max_diff2": X, "min_top1": Y}
//       two safetensors files hold the same predictions: diff2 at most X. Where the baseline's labels have the tensor's
//       shape without its last extent, that extent is the classes, and at least a share Y of rows has the same top
//       class
//   {"type": "same_result", "measured": FILE, "baseline": FILE, "key": KEY, "max_relative": X}
//       KEY of the last results differs by at most X, relative to the baseline
//   {"type": "same_weights", "records": [FILE, ...]}
//       every result was made from weights of the same hash
//   {"type": "same_training", "measured": FOLDER, "baseline": FOLDER, "steps": N, "max_relative": X}
//       two steps trained alike for N steps: every loss, and all weights after every step, are at most X apart, as
//       verify/training_comparison.h defines it. Reads comparison.json of the measured step, or else what that is made
//       from
//   {"type": "not_applicable", "reason": TEXT}
//       Skipped, for a place in a table where there is nothing to check
//
// Each may have a "name", shown to people, and a "cell" [row, column] when it is a place in a table. A FILE is relative
// to the run folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "verify/verdict.h"

namespace assay {

// Never throws for evidence that is missing or broken: that is a verdict, Invalid, with the reason.
Verdict run_check(const Json& check, const std::filesystem::path& run_folder);

// Writes what a later run_check() needs of large files, so that they may go. Evidence that is missing or broken is left
// to the verdict. Throws InfrastructureError.
void keep_evidence(const Json& check, const std::filesystem::path& run_folder);

std::vector<std::string> check_types();

}  // namespace assay
