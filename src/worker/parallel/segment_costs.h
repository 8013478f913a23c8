// What the segments of a network cost, so that pipeline stages can have equal shares.
#pragma once

#include <vector>

#include "engine/module.h"

namespace assay {

std::vector<double> parameters_of_segments(const Network& network);  // numbers in weights
// Seconds of a forward and a backward pass over made-up inputs of the declared shapes. Weights, statistics and the
// random generator are afterwards what they were before.
std::vector<double> seconds_of_segments(Module& module, int64_t num_samples);

}  // namespace assay
