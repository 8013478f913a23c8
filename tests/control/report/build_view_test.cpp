#include "report/build_view.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "execute/executor.h"
#include "launch/host/local.h"
#include "record/keys.h"
#include "record/stream.h"

using namespace assay;

namespace {

class BuildViewTest : public ::testing::Test {
 protected:
  // A run whose first step writes these record lines.
  fs::path run(const std::vector<Record>& records, const std::string& script = "true") {
    std::string text;
    for (const Record& record : records) text += to_record_line(record) + "\n";
    write_file_atomic(folder_.path() / "records", text);
    Step step;
    step.name = "train";
    step.kind = StepKind::Train;
    step.command.argv = {"/bin/sh", "-c",
                         "cat " + (folder_.path() / "records").string() + " >> $ASSAY_RECORDS; " + script};
    Step after;
    after.name = "after";
    after.command.argv = {"true"};
    after.needs = {"train"};
    RunFolder folder = RunFolder::create(folder_.path() / "runs",
                                         {.title = "t", .case_key = "", .steps = {step, after}}, {"assay", "a b"});
    LocalLauncher launcher;
    Console console(Console::Level::Quiet);
    execute(folder, launcher, console);
    return folder.path();
  }
  static Record metric(int64_t global_step, double loss) {
    Record record;
    record.type = Record::Type::Metrics;
    record.step = {{1, global_step}};
    record.data = {{keys::kTrainLoss, json_number(loss)}, {keys::kGlobalStep, global_step}, {"rank", 0}};
    return record;
  }
  TempFolder folder_;
};

}  // namespace

TEST_F(BuildViewTest, HasStepsCurvesResultAndEnvironment) {
  Record metadata;
  metadata.type = Record::Type::Metadata;
  metadata.name = keys::kTrainLoss;
  metadata.data = {{"unit", "nats"}};
  Record result;
  result.type = Record::Type::Result;
  result.name = "resnet";
  result.data = {{keys::kFinalAccuracy, 0.9}};
  Record environment;
  environment.type = Record::Type::Environment;
  environment.data = {{"libtorch", {{"version", "1.13"}}}};
  Record parameters;
  parameters.type = Record::Type::Parameters;
  parameters.data = {{"Engine", {{"max_steps", 3}}}};
  const RunView view = build_view(run({metadata, metric(1, 2.0), metric(2, 1.0), result, environment, parameters}));
  EXPECT_EQ(view.outcome, Outcome::Pass);
  EXPECT_EQ(view.command, "assay 'a b'");
  ASSERT_EQ(view.steps.size(), 2u);
  EXPECT_EQ(view.steps[0].kind, "train");
  ASSERT_EQ(view.curves.size(), 1u);
  EXPECT_EQ(view.curves[0].unit, "nats");
  EXPECT_EQ(view.curves[0].x, (std::vector<double>{1, 2}));
  EXPECT_EQ(view.curves[0].y, (std::vector<double>{2, 1}));
  ASSERT_EQ(view.case_results.size(), 1u);
  EXPECT_EQ(view.case_results[0].shown["case"], "resnet");
  EXPECT_EQ(view.environment["libtorch"]["version"], "1.13");
  EXPECT_TRUE(view.environment.contains("host"));
  EXPECT_EQ(view.parameters["Engine.max_steps"], 3);
}

TEST_F(BuildViewTest, VoidsWhatLiesBeyondTheResumedCheckpoint) {
  Record resumed;
  resumed.type = Record::Type::Event;
  resumed.name = keys::kResumed;
  resumed.data = {{keys::kGlobalStep, 1}};
  const RunView view = build_view(run({metric(1, 2.0), metric(2, 9.0), metric(3, 9.0), resumed, metric(2, 1.0)}));
  EXPECT_EQ(view.curves[0].y, (std::vector<double>{2, 1}));
}

TEST_F(BuildViewTest, ShowsReasonAndLastLinesOfAFailure) {
  const RunView view = build_view(run({}, "echo something; echo 'error: broken'; exit 4"));
  EXPECT_EQ(view.outcome, Outcome::Error);
  EXPECT_EQ(view.reason, "train: exit code 4: broken");
  EXPECT_EQ(view.steps[0].last_lines, (std::vector<std::string>{"something", "error: broken"}));
  EXPECT_EQ(view.steps[1].outcome, Outcome::Skipped);
  EXPECT_TRUE(view.case_results.empty()) << "nothing measured, nothing shown";
}

TEST_F(BuildViewTest, CallsAnUnfinishedRunInvalid) {
  Step step;
  step.name = "one";
  step.command.argv = {"true"};
  const RunFolder folder =
      RunFolder::create(folder_.path() / "runs", {.title = "t", .case_key = "", .steps = {step}}, {"assay"});
  const RunView view = build_view(folder.path());
  EXPECT_EQ(view.outcome, Outcome::Invalid);
  EXPECT_EQ(view.reason, "the run has not ended");
  EXPECT_EQ(view.steps[0].reason, "not started");
}

TEST_F(BuildViewTest, RejectsWhatIsNotARun) { EXPECT_THROW(build_view(folder_.path()), DataError); }
