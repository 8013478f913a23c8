// How far a preparation is, and whether the user wants it to end.
#pragma once

#include <functional>
#include <string_view>

namespace assay {

// `done` of `total` units of a stage ("fetch", "convert"); total 0: unknown.
using ProgressReport = std::function<void(std::string_view stage, double done, double total, std::string_view unit)>;

// Throws InterruptedError once the user asked for a stop.
void check_stop();

}  // namespace assay
