#include "verify/training_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "formats/safetensors.h"
#include "record/keys.h"
#include "record/stream.h"
#include "run/evidence.h"

using namespace assay;

namespace {

constexpr int64_t kSteps = 4;

struct FakeCheckpoint {
  std::vector<double> weight = {0.5, -0.25, 0.125, 1, 2, 3};  // [2, 3]
  std::vector<double> bias = {0.01, 0.02};
  std::vector<double> noise = {0, 0};  // a parameter with a true gradient of 0
};

// What a training leaves: losses in records, a checkpoint a step.
struct FakeTraining {
  std::map<int64_t, double> losses;
  std::map<int64_t, FakeCheckpoint> checkpoints;
  std::string dtype = "F64";

  FakeTraining() {
    for (int64_t step = 1; step <= kSteps; ++step) {
      losses[step] = 5.0 / static_cast<double>(step);
      checkpoints[step].weight[0] += 0.01 * static_cast<double>(step);
    }
  }
};

Plan two_steps() {
  Plan plan;
  for (const char* name : {"measured", "baseline"}) {
    plan.steps.emplace_back();
    plan.steps.back().name = name;
  }
  return plan;
}

class TrainingComparisonTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const FakeTraining& training) {
    const fs::path folder = folder_.path() / run_.plan.folder(name);
    fs::remove_all(folder);
    make_folder(folder);
    RecordWriter writer(folder / "records.jsonl");
    for (const auto& [step, loss] : training.losses) {
      Record record;
      record.type = Record::Type::Metrics;
      record.step = {{1, step}};
      record.data = {{keys::kTrainLoss, json_number(loss)}, {keys::kGlobalStep, step}};
      writer.write(record);
    }
    for (const auto& [step, checkpoint] : training.checkpoints) {
      const fs::path path = folder / "output/checkpoints" / ("epoch_1_step_" + std::to_string(step));
      make_folder(path);
      write_weights(path / "model.safetensors", checkpoint, training.dtype);
    }
    end_step(name, Outcome::Pass, "", 1.5);
  }

  static void write_weights(const fs::path& path, const FakeCheckpoint& checkpoint, const std::string& dtype) {
    std::vector<std::vector<float>> kept;
    kept.reserve(3);
    std::vector<TensorView> tensors;
    const auto add = [&](const std::string& name, const std::vector<double>& values, std::vector<int64_t> shape) {
      const void* data = values.data();
      if (dtype == "F32") data = kept.emplace_back(values.begin(), values.end()).data();
      tensors.push_back(
          {name, dtype, std::move(shape), static_cast<const std::byte*>(data), values.size() * dtype_size(dtype)});
    };
    add("h.0.weight", checkpoint.weight, {2, 3});
    add("h.0.bias", checkpoint.bias, {2});
    add("h.0.key.bias", checkpoint.noise, {2});
    write_safetensors(path, tensors);
  }

  Json spec(double limit = 1e-10) const {
    return {{"type", "same_training"}, {"measured", "steps/1-measured"}, {"baseline", "steps/2-baseline"},
            {"steps", kSteps},         {"max_relative", limit},          {"cell", {"dp2", "float64"}}};
  }

  // The verdict about a training that differs from the baseline by what `change` does.
  Verdict judge(const std::function<void(FakeTraining&)>& change, double limit = 1e-10,
                const std::string& dtype = "F64") {
    FakeTraining training;
    training.dtype = dtype;
    write("baseline", training);
    change(training);
    write("measured", training);
    return verdict(limit);
  }

  Verdict verdict(double limit = 1e-10) const { return Check::parse(spec(limit)).judge(RunEvidence(run_)); }

  // As the journal has it.
  void end_step(const std::string& name, Outcome outcome, const std::string& reason, double seconds) {
    StepState& state = run_.state.steps[name];
    state.outcome = outcome;
    state.reason = reason;
    state.seconds = seconds;
  }

  TempFolder folder_;
  RunRecord run_{.path = folder_.path(), .plan = two_steps(), .state = {}};
};

bool has(const Verdict& verdict, const std::string& part) { return verdict.reason.find(part) != std::string::npos; }

}  // namespace

TEST_F(TrainingComparisonTest, PassesEqualTrainings) {
  const Verdict verdict = judge([](FakeTraining&) {});
  EXPECT_EQ(verdict.outcome, Outcome::Pass) << verdict.reason;
  EXPECT_EQ(verdict.figures["loss_difference"], 0);
  EXPECT_EQ(verdict.figures["seconds"], 1.5);
  EXPECT_EQ(verdict.row, "dp2");
  EXPECT_EQ(verdict.column, "float64");
}

TEST_F(TrainingComparisonTest, NamesALossThatIsOff) {
  const Verdict verdict = judge([](FakeTraining& t) { t.losses[3] *= 1 + 1e-9; });
  EXPECT_EQ(verdict.outcome, Outcome::Fail);
  EXPECT_TRUE(has(verdict, "first at step 3: loss ")) << verdict.reason;
  EXPECT_NEAR(verdict.figures["loss_difference"].get<double>(), 1e-9, 1e-12);
  EXPECT_EQ(judge([](FakeTraining& t) { t.losses[3] *= 1 + 1e-11; }).outcome, Outcome::Pass);
}

TEST_F(TrainingComparisonTest, NamesAWeightThatIsOffWithItsPosition) {
  const Verdict verdict = judge([](FakeTraining& t) {
    t.checkpoints[2].weight[5] += 1e-8;  // of at most 3
    t.checkpoints[3].weight[1] += 1e-3;
  });
  EXPECT_EQ(verdict.outcome, Outcome::Fail);
  EXPECT_TRUE(has(verdict, "first at step 2: h.0.weight[1,2] is 3.00000001 against 3.0 (3.3e-09 apart), rank unknown"))
      << verdict.reason;
}

TEST_F(TrainingComparisonTest, DoesNotPassWithPartsLeftOut) {
  EXPECT_TRUE(has(judge([](FakeTraining& t) { t.losses.erase(2); }), "first at step 2: no loss of step 2"));
  EXPECT_TRUE(has(judge([](FakeTraining& t) { t.losses[5] = 1; }), "went on to step 5"));
  const Verdict gone = judge([](FakeTraining& t) { t.checkpoints.erase(4); });
  EXPECT_EQ(gone.outcome, Outcome::Fail);
  EXPECT_TRUE(has(gone, "no checkpoint of step 4")) << gone.reason;
  const Verdict shorter = judge([](FakeTraining& t) { t.checkpoints[1].bias = {0.01}; });
  EXPECT_EQ(shorter.outcome, Outcome::Invalid) << "a tensor whose bytes do not fit its shape: " << shorter.reason;

  FakeTraining training;
  write("measured", training);
  training.checkpoints.erase(1);
  write("baseline", training);
  const Verdict verdict = this->verdict();
  EXPECT_EQ(verdict.outcome, Outcome::Invalid);
  EXPECT_TRUE(has(verdict, "the baseline has no checkpoint of step 1")) << verdict.reason;
}

TEST_F(TrainingComparisonTest, DoesNotPassNotANumber) {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(judge([&](FakeTraining& t) { t.losses[1] = bad; }).outcome, Outcome::Fail);
    const Verdict verdict = judge([&](FakeTraining& t) { t.checkpoints[3].bias[1] = bad; });
    EXPECT_EQ(verdict.outcome, Outcome::Fail);
    EXPECT_TRUE(has(verdict, "first at step 3: h.0.bias[1]")) << verdict.reason;
    // Also where both have it.
    FakeTraining both;
    both.losses[2] = bad;
    both.checkpoints[2].weight[2] = bad;
    write("baseline", both);
    write("measured", both);
    EXPECT_EQ(this->verdict().outcome, Outcome::Fail);
  }
}

TEST_F(TrainingComparisonTest, IgnoresRoundingNoiseWithoutAGradient) {
  // Its own size is 1e-17: relative to that, everything differs.
  const auto noisy = [](FakeTraining& t) { t.checkpoints[2].noise = {1e-17, -2e-17}; };
  EXPECT_EQ(judge(noisy).outcome, Outcome::Pass);
  const auto wrong = [](FakeTraining& t) { t.checkpoints[2].noise = {0, 1e-9}; };
  EXPECT_EQ(judge(wrong).outcome, Outcome::Fail);
}

TEST_F(TrainingComparisonTest, LimitsSinglePrecisionSeparately) {
  const auto change = [](FakeTraining& t) { t.checkpoints[1].weight[5] += 3e-6; };
  EXPECT_EQ(judge(change, 1e-5, "F32").outcome, Outcome::Pass);
  EXPECT_EQ(judge(change, 1e-7, "F32").outcome, Outcome::Fail);
}

TEST_F(TrainingComparisonTest, NamesTheRankByTheParametersPlacement) {
  FakeTraining training;
  write("baseline", training);
  training.checkpoints[2].weight[4] += 1;
  write("measured", training);
  write_file_atomic(folder_.path() / "steps/1-measured/output/checkpoints/epoch_1_step_2/meta.json", R"({"placement":
    {"h.0.weight": [{"ranks": [0, 2], "dim": 0, "begin": 0, "end": 1}, {"ranks": [1, 3], "dim": 0, "begin": 1, "end": 2}]}})");
  const Verdict verdict = this->verdict();
  EXPECT_TRUE(has(verdict, "h.0.weight[1,1] is 3.0 against 2.0 (")) << verdict.reason;
  EXPECT_TRUE(has(verdict, "ranks 1, 3")) << verdict.reason;
}

TEST_F(TrainingComparisonTest, SplitsEachPartOfAJoinedDimension) {
  FakeTraining training;
  write("baseline", training);
  training.checkpoints[1].weight[1] += 1;  // column 1: the second of three groups
  write("measured", training);
  const fs::path meta = folder_.path() / "steps/1-measured/output/checkpoints/epoch_1_step_1/meta.json";
  write_file_atomic(meta, R"({"placement": {"h.0.weight": [
    {"ranks": [0], "dim": 1, "groups": 3, "begin": 0, "end": 0}, {"ranks": [1], "dim": 1, "groups": 3, "begin": 0, "end": 1}]}})");
  EXPECT_TRUE(has(verdict(), "h.0.weight[0,1]"));
  EXPECT_TRUE(has(verdict(), ", rank 1"));
}

TEST_F(TrainingComparisonTest, NamesTheRankOfDifferingReplicas) {
  FakeTraining training;
  write("baseline", training);
  write("measured", training);
  Record event;
  event.type = Record::Type::Event;
  event.name = keys::kReplicaDiffers;
  event.data = {{"step", 2}, {"parameter", "h.0.bias"}, {"rank", 3}};
  RecordWriter(folder_.path() / "steps/1-measured/records.rank3.jsonl", 3).write(event);
  const Verdict alone = verdict();
  EXPECT_EQ(alone.outcome, Outcome::Fail);
  EXPECT_EQ(alone.reason, "first at step 2: h.0.bias is another on rank 3 than on its replicas");

  training.checkpoints[2].bias[0] = 5;
  write("measured", training);
  RecordWriter(folder_.path() / "steps/1-measured/records.rank3.jsonl", 3).write(event);
  const Verdict verdict = this->verdict();
  EXPECT_TRUE(has(verdict, "h.0.bias[0] is 5.0 against 0.01")) << verdict.reason;
  EXPECT_TRUE(has(verdict, ", rank 3")) << verdict.reason;
}

TEST_F(TrainingComparisonTest, NeedsOnlyWhatWasKept) {
  const auto change = [](FakeTraining& t) { t.checkpoints[2].weight[5] += 1e-3; };
  const Verdict before = judge(change);
  Check::parse(spec()).keep_evidence(RunEvidence(run_));
  fs::remove_all(folder_.path() / "steps/1-measured/output");
  fs::remove_all(folder_.path() / "steps/2-baseline");
  const Verdict after = verdict();
  EXPECT_EQ(to_json(after), to_json(before));
}

TEST_F(TrainingComparisonTest, ReportsWhyAStepBroke) {
  write("baseline", {});
  EXPECT_EQ(verdict().outcome, Outcome::Invalid);
  make_folder(folder_.path() / "steps/1-measured");
  end_step("measured", Outcome::Error, "rank 1: exit code 12", 2);
  const Verdict verdict = this->verdict();
  EXPECT_EQ(verdict.outcome, Outcome::Error);
  EXPECT_EQ(verdict.reason, "rank 1: exit code 12");
}

TEST_F(TrainingComparisonTest, IgnoresStatusJsonWhichIsARendering) {
  EXPECT_EQ(judge([](FakeTraining&) {}).outcome, Outcome::Pass);
  write_file_atomic(folder_.path() / "steps/1-measured/status.json",
                    R"({"outcome": "Error", "reason": "not what the journal says", "seconds": 2})");
  EXPECT_EQ(this->verdict().outcome, Outcome::Pass) << "the journal has the end of a step";
  run_.state.steps.clear();
  EXPECT_EQ(this->verdict().outcome, Outcome::Invalid);
}

TEST_F(TrainingComparisonTest, ForgetsReplicasThatDifferedBeyondACheckpoint) {
  write("baseline", {});
  write("measured", {});
  Record event;
  event.type = Record::Type::Event;
  event.name = keys::kReplicaDiffers;
  event.data = {{"step", 2}, {"parameter", "h.0.bias"}, {"rank", 3}};
  Record resumed;
  resumed.type = Record::Type::Event;
  resumed.name = keys::kResumed;
  resumed.data = {{keys::kGlobalStep, 1}};
  RecordWriter writer(folder_.path() / "steps/1-measured/records.rank3.jsonl", 3);
  writer.write(event);
  writer.flush();
  EXPECT_EQ(this->verdict().outcome, Outcome::Fail);
  writer.write(resumed);
  writer.flush();
  EXPECT_EQ(this->verdict().outcome, Outcome::Pass) << "that attempt continued before they differed";
}

TEST_F(TrainingComparisonTest, VoidsWhatLiesBeyondAContinuedAttempt) {
  std::vector<Record> records;
  const auto loss = [&](int64_t step, double value) {
    Record record;
    record.type = Record::Type::Metrics;
    record.data = {{keys::kTrainLoss, value}, {keys::kGlobalStep, step}};
    records.push_back(record);
  };
  loss(1, 3);
  loss(2, 99);
  Record resumed;
  resumed.type = Record::Type::Event;
  resumed.name = keys::kResumed;
  resumed.data = {{keys::kGlobalStep, 1}};
  records.push_back(resumed);
  loss(2, 2);
  EXPECT_EQ(losses_by_step(without_voided(records)), (std::map<int64_t, double>{{1, 3}, {2, 2}}));
}
