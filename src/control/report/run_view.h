// Everything a report shows of one run, as one value. Every renderer gets the same value, so they cannot disagree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "results/result.h"
#include "verify/verdict.h"

namespace assay {

struct StepView {
  int number = 0;    // 1-based, order in the plan
  std::string name;  // "train"
  std::string kind;  // "train", "evaluate", "export", "infer", "compare", "command"
  Outcome outcome = Outcome::Invalid;
  std::string reason;             // why it did not pass; empty when it did
  std::optional<double> seconds;  // of the attempt that decided; nullopt when it never ran
  std::optional<int> exit_code;
  std::optional<int> signal;
  int attempts = 0;
  std::vector<std::string> restarts;  // why its ranks were started again, each time
  std::optional<int64_t> max_rss_bytes;
  std::vector<std::string> last_lines;  // of the log, for steps that did not pass
  std::string folder;                   // relative to the run folder: "steps/1-train"
  std::optional<int64_t> started_us;    // of the attempt that decided; places the step on the timeline
};

// One line of a chart. x is the global training step.
struct Curve {
  std::string name;   // "train.loss"
  std::string stage;  // "TRAIN" or "VALID"
  std::string unit;   // "", "images/s"
  std::vector<double> x;
  std::vector<double> y;    // NaN and infinities are kept: a report must show where a loss broke
  std::string label;        // what people call it: "accuracy" for val.metric; empty: the name says it
  std::string source;       // the step or case it belongs to; needed only when a run has several
  size_t total_points = 0;  // set when x and y are a selection of so many points; 0: they are all there is
};

struct RunView {
  std::string id;       // name of the run folder
  std::string title;    // "demo: resnet on Fashion-MNIST"
  std::string command;  // as typed
  int64_t started_us = 0;
  std::optional<int64_t> ended_us;
  Outcome outcome = Outcome::Invalid;
  std::string reason;  // why the run as a whole did not pass; empty when it did
  std::vector<StepView> steps;
  std::vector<Verdict> verdicts;
  std::vector<Result> case_results;   // of the steps that have something to show
  Json environment = Json::object();  // group -> {name: value}
  Json parameters = Json::object();   // effective configuration, dotted key -> value
  std::vector<Curve> curves;
};

}  // namespace assay
