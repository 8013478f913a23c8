// Rows and run folders for the tests of results, without running anything.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "record/keys.h"
#include "record/stream.h"
#include "results/result.h"
#include "run/run_folder.h"

namespace assay {

inline Record result_record(Json data) {
  Record record;
  record.type = Record::Type::Result;
  record.name = "simplenet";
  record.data = std::move(data);
  return record;
}

// A run folder whose steps have ended; returns its path.
class RunMaker {
 public:
  explicit RunMaker(fs::path runs) : runs_(std::move(runs)) {}
  std::optional<Site> site = std::nullopt;  // of the plan
  struct Round {
    std::string case_key = "simplenet:libtorch:cpu:1:1:3";
    std::vector<Record> records = {};
    Outcome outcome = Outcome::Pass;
    std::string reason = {};
    Json disturbance = nullptr;
    std::string raw_records = {};  // instead of records
    int nproc = 1;
    StepKind kind = StepKind::Train;
    std::map<std::string, Json> files = {};
  };
  fs::path make(const std::vector<Round>& rounds, const std::string& plan_case = "") const {
    Plan plan{.title = "t", .case_key = plan_case, .steps = {}, .site = site};
    for (size_t i = 0; i < rounds.size(); ++i) {
      Step step;
      step.name = "s" + std::to_string(i + 1);
      step.kind = rounds[i].kind;
      step.command.argv = {"true"};
      step.ranks.nproc = rounds[i].nproc;
      step.measures.key = rounds[i].case_key;
      step.measures.round = plan_case.empty() ? static_cast<int>(i + 1) : 0;
      step.files.inputs = rounds[i].files;
      plan.steps.push_back(step);
    }
    RunFolder folder = RunFolder::create(runs_, plan, {"assay"});
    std::vector<Outcome> outcomes;
    for (size_t i = 0; i < rounds.size(); ++i) {
      const Step& step = folder.plan().steps[i];
      folder.step_started(step);
      std::string text = rounds[i].raw_records;
      for (const Record& record : rounds[i].records) text += to_record_line(record) + "\n";
      make_folder(folder.step_folder(step));
      write_file_atomic(folder.step_folder(step) / "records.jsonl", text);
      if (!rounds[i].disturbance.is_null()) {
        write_file_atomic(folder.step_folder(step) / "disturbance.json", to_line(rounds[i].disturbance));
      }
      StepState end;
      end.outcome = rounds[i].outcome;
      end.reason = rounds[i].reason;
      end.seconds = 20;
      end.max_rss_bytes = 1 << 20;
      folder.step_ended(step, end);
      outcomes.push_back(rounds[i].outcome);
    }
    folder.run_ended(worst(outcomes));
    return folder.path();
  }

 private:
  fs::path runs_;
};

inline Result result_of(const std::string& run, const std::string& step, double throughput) {
  Result row;
  row.run = run;
  row.step = step;
  row.case_key = "simplenet:libtorch:cpu:1:1:3";
  row.round = 1;
  row.system = "Test CPU, 2 cores";
  row.hosts = {"here"};
  row.outcome = Outcome::Pass;
  row.started_us = 1'000'000;
  row.figures.values = {{keys::kThroughputTrain, throughput}, {keys::kE2eTime, 1000 / throughput}};
  row.figures.unit = "images/s";
  row.target = {{"metric", "accuracy"}, {"value", 0.9}, {"goal", "maximize"}};
  row.hashes = {{"case", "abc"}};
  return row;
}

}  // namespace assay
