// How numbers become words in every report: one place, so that the terminal, Markdown and HTML show the same figure the
// same way. What was not measured is "-", never 0.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "report/run_view.h"

namespace assay {

inline constexpr char kNotMeasured[] = "-";

std::string number_text(double value);   // 0.9132, 2.303, 412.5, 12345, 3.2e-05, NaN
std::string bytes_text(double bytes);    // 512 B, 412.0 MiB, 1.42 GiB
std::string when_text(int64_t time_us);  // 2026-11-15 19:43:05 UTC
std::string seconds_text(std::optional<double> seconds);
std::string value_text(const Json& value);  // any JSON value on one line

// From start to end; nullopt while the run has no end.
std::optional<double> run_seconds(const RunView& run);

// "exit code 3", "killed by signal 9", or "-" when it never ran.
std::string exit_text(const StepView& step);

// How often it was begun: "2 attempts", "restarted 1 time: rank 2: killed by signal 9". Empty in the usual case.
std::vector<std::string> step_notes(const StepView& step);

// A number of an object, nullopt when it is missing, null or of another type.
std::optional<double> member_number(const Json& object, std::string_view key);

// Of what a result shows (Result::shown):
std::optional<double> result_number(const Result& result, std::string_view key);
// The value under `key` with its unit: times, memory, throughput, MFU as a percentage.
std::string result_text(const Result& result, std::string_view key);
// The target's value; the key holds a number or {metric, value, goal}.
std::optional<double> target_value(const Result& result);
std::string metric_name(const Result& result);  // "accuracy" unless the target names another
// The key of the case, or "case N".
std::string case_name(const Result& result, size_t index);

// One figure that people ask for first.
struct Figure {
  std::string label;  // "throughput"
  std::string value;  // "2481 images/s"
  std::string note;   // "target 0.9000, reached"; may be empty
};
std::vector<Figure> headline(const Result& result);

// Every entry of a result as label and text (note: its key), known keys first, in groups that belong together; nested
// objects flattened, each a group of its own.
struct FigureGroup {
  std::string title;  // "Time"
  std::vector<Figure> figures;
};
std::vector<FigureGroup> all_figures(const Result& result);

// Steps or verdicts by outcome.
struct Tally {
  size_t total = 0;
  size_t passed = 0;
};
Tally tally_steps(const RunView& run);
Tally tally_verdicts(const RunView& run);

}  // namespace assay
