// Runs for the tests of the reports.
#pragma once

#include "report/run_view.h"

namespace assay {

// Everything in it a report can show; times in round numbers.
inline RunView sample_run() {
  RunView run;
  run.id = "20261115-194305-demo";
  run.title = "demo: resnet on Fashion-MNIST";
  run.command = "assay demo --set Optimizer.lr=0.1";
  run.started_us = 1794771785'000'000;  // date -u -d @1794771785: 2026-11-15 19:43:05
  run.ended_us = run.started_us + 100'500'000;
  run.outcome = Outcome::Pass;
  StepView train;
  train.number = 1;
  train.name = "train";
  train.kind = "train";
  train.outcome = Outcome::Pass;
  train.seconds = 80;
  train.exit_code = 0;
  train.attempts = 1;
  train.max_rss_bytes = int64_t{3} << 29;  // 1.5 GiB
  train.folder = "steps/1-train";
  train.started_us = run.started_us;
  StepView evaluate = train;
  evaluate.number = 2;
  evaluate.name = "evaluate";
  evaluate.kind = "evaluate";
  evaluate.seconds = 20;
  evaluate.max_rss_bytes.reset();
  evaluate.folder = "steps/2-evaluate";
  evaluate.started_us = run.started_us + 80'000'000;
  run.steps = {train, evaluate};
  run.verdicts = {{.name = "accuracy reaches its target",
                   .outcome = Outcome::Pass,
                   .reason = "0.9132 >= 0.9000",
                   .figures = {{"accuracy", 0.9132}, {"energy", nullptr}}}};
  run.case_results = {shown_result({{"case", "resnet:libtorch:cpu:1:1:1"},
                                    {"e2e_time", 98.25},
                                    {"p_whole", 2000.5},
                                    {"p_train", 2481.4},
                                    {"unit", "images/s"},
                                    {"converged", true},
                                    {"final_accuracy", 0.9132},
                                    {"target", {{"metric", "accuracy"}, {"value", 0.9}, {"goal", "max"}}},
                                    {"mfu", nullptr},
                                    {"peak_memory_bytes", 1610612736},
                                    {"hashes", {{"case", "ab12"}, {"data", "cd34"}}}})};
  run.environment = {{"machine", {{"cpu", "two cores"}, {"energy meter", nullptr}}}};
  run.parameters = {{"Optimizer.lr", 0.1}, {"Model.widths", {32, 64}}, {"Engine.threads", nullptr}};
  run.curves.resize(2);
  run.curves[0] = {.name = "train.loss",
                   .stage = "TRAIN",
                   .unit = "",
                   .x = {10, 20, 30},
                   .y = {2.5, 1.25, 0.5},
                   .label = "",
                   .source = ""};
  run.curves[1] = {
      .name = "val.metric", .stage = "VALID", .unit = "", .x = {30}, .y = {0.9132}, .label = "accuracy", .source = ""};
  return run;
}

// Sets members of what the first result shows.
inline void change_result(RunView& run, const Json& members) {
  Json shown = run.case_results[0].shown;
  shown.update(members);
  run.case_results[0] = shown_result(shown);
}

// The first step broke, the second was skipped.
inline RunView failing_run() {
  RunView run = sample_run();
  run.outcome = Outcome::Error;
  run.reason = "step 1 (train) broke";
  run.steps[0].outcome = Outcome::Error;
  run.steps[0].reason = "killed by signal 9 (Killed)";
  run.steps[0].exit_code.reset();
  run.steps[0].signal = 9;
  run.steps[0].attempts = 3;
  run.steps[0].last_lines = {"step 10 loss 2.5", "\033[31mout of memory\033[0m"};
  run.steps[1].outcome = Outcome::Skipped;
  run.steps[1].reason = "needs step 1";
  run.steps[1].seconds.reset();
  run.steps[1].exit_code.reset();
  run.steps[1].started_us.reset();
  run.steps[1].attempts = 0;
  run.verdicts = {
      {.name = "accuracy reaches its target",
       .outcome = Outcome::Invalid,
       .reason = "not measured",
       .figures = Json::object()},
      {.name = "losses are numbers", .outcome = Outcome::Fail, .reason = "NaN at step 30", .figures = Json::object()}};
  change_result(run, {{"final_accuracy", nullptr}, {"converged", false}});
  return run;
}

// A plan with no step.
inline RunView empty_run() {
  RunView run;
  run.id = "20261115-210000-empty";
  run.started_us = 1794771785'000'000;
  run.reason = "the plan has no step";
  return run;
}

// A text that tries to become markup wherever it lands.
inline constexpr char kHostile[] =
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`|*_]]>&\xE2\x80\xA8\x01\033[2J\xFF";

inline RunView hostile_run() {
  RunView run = failing_run();
  run.id = run.title = run.command = run.reason = kHostile;
  for (StepView& step : run.steps) {
    step.name = step.kind = step.reason = step.folder = kHostile;
    step.last_lines = {kHostile, "```"};
  }
  for (Verdict& verdict : run.verdicts) verdict.name = verdict.reason = kHostile;
  change_result(run, {{"case", kHostile},
                      {"unit", kHostile},
                      {kHostile, kHostile},
                      {"target", {{"metric", kHostile}, {"value", 0.9}}}});
  run.environment = {{kHostile, {{kHostile, kHostile}}}};
  run.parameters = {{kHostile, kHostile}};
  for (Curve& curve : run.curves) curve.name = curve.stage = curve.unit = curve.label = curve.source = kHostile;
  return run;
}

}  // namespace assay
