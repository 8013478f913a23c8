#include "frontends/parallel/matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "run/evidence.h"

using namespace assay;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace {

MatrixRequest request(const std::string& name) {
  return {.base = {.home = ASSAY_SOURCE_DIR, .key = CaseKey::parse(name)},
          .strategies = {"dp2", "pp2"},
          .precisions = {"float64", "float32"},
          .num_steps = 20,
          .tiny = true,
          .keep = false};
}

std::vector<std::string> step_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Step& step : plan.steps) names.push_back(step.name);
  return names;
}

const Json& config_of(const Plan& plan, const std::string& step) {
  return plan.step(step).files.inputs.at("config.json").at("config");
}

}  // namespace

TEST(ParallelMatrix, PlansOneProcessThenStrategiesThenTheVerdict) {
  const Plan plan = matrix_plan(request("gpt")).plan;
  EXPECT_THAT(step_names(plan), ElementsAre("one-process-float64", "dp2-float64", "pp2-float64", "one-process-float32",
                                            "dp2-float32", "pp2-float32", "verify"));
  EXPECT_EQ(plan.title, "verify parallel gpt (tiny) on sotu-bpe");
  EXPECT_EQ(plan.case_key, "") << "a tiny size is no result of the case";
  const Step& dp = plan.step("dp2-float64");
  EXPECT_EQ(dp.ranks.nproc, 2);
  EXPECT_THAT(dp.needs, ElementsAre("one-process-float64"));
  EXPECT_EQ(dp.limits.max_restarts, 0) << "a strategy that crashes is a finding";
  EXPECT_THAT(dp.files.discard, ElementsAre("steps/2-dp2-float64/output/checkpoints"));
  const Step& verify = plan.step("verify");
  EXPECT_THAT(verify.needs, IsEmpty()) << "the table is shown also where a strategy breaks";
  ASSERT_EQ(verify.checks.size(), 4u);
  EXPECT_EQ(verify.checks[0], dp.checks[0]);
  EXPECT_EQ(verify.checks[0].to_json()["baseline"], "steps/1-one-process-float64");
  EXPECT_EQ(verify.checks[0].to_json()["measured"], "steps/2-dp2-float64");
  EXPECT_EQ(verify.checks[0].to_json()["max_relative"], 1e-10);
  EXPECT_EQ(verify.checks[3].to_json()["max_relative"], 1e-5);
  EXPECT_EQ(verify.checks[3].to_json()["baseline"], "steps/4-one-process-float32");
}

TEST(ParallelMatrix, ChangesNothingButTheStrategy) {
  const Plan plan = matrix_plan(request("gpt")).plan;
  const Json& alone = config_of(plan, "one-process-float64");
  Json dp = config_of(plan, "dp2-float64");
  EXPECT_EQ(alone["Model"]["hidden_dropout_prob"], 0);
  EXPECT_EQ(alone["Engine"]["max_steps"], 20);
  EXPECT_EQ(alone["Engine"]["save_load"]["save_steps"], 1);
  EXPECT_EQ(alone["Engine"]["precision"], "float64");
  EXPECT_EQ(alone["Distributed"]["check_replicas"], true);
  EXPECT_TRUE(alone["Data"]["Eval"].is_null());
  EXPECT_EQ(dp["Global"]["local_batch_size"], 4);
  EXPECT_EQ(dp["Distributed"]["dp_degree"], 2);
  dp["Global"] = alone["Global"];
  dp["Distributed"] = alone["Distributed"];
  EXPECT_EQ(dp, alone);
  const Json& pp = config_of(plan, "pp2-float32");
  EXPECT_EQ(pp["Engine"]["accumulate_steps"], 4);
  EXPECT_EQ(pp["Global"]["micro_batch_size"], 2);
  EXPECT_EQ(pp["Global"]["global_batch_size"], 8);
}

TEST(ParallelMatrix, PrefersWhatTheUserSets) {
  MatrixRequest wanted = request("gpt");
  wanted.base.sets = {"Optimizer.epsilon=0.5", "Model.hidden_size=64", "Global.seed=3"};
  const Plan plan = matrix_plan(wanted).plan;
  EXPECT_EQ(config_of(plan, "dp2-float64")["Optimizer"]["epsilon"], 0.5);
  EXPECT_EQ(config_of(plan, "dp2-float64")["Model"]["hidden_size"], 64);
  EXPECT_EQ(config_of(plan, "one-process-float32")["Global"]["seed"], 3);
}

TEST(ParallelMatrix, ComparesSplitBatchesWithSplitBatches) {
  MatrixRequest wanted = request("resnet");
  wanted.precisions = {"float64"};
  const Plan plan = matrix_plan(wanted).plan;
  EXPECT_THAT(step_names(plan),
              ElementsAre("one-process-float64", "dp2-float64", "one-process-in-4-float64", "pp2-float64", "verify"));
  EXPECT_EQ(config_of(plan, "one-process-in-4-float64")["Engine"]["accumulate_steps"], 4);
  EXPECT_EQ(plan.step("pp2-float64").checks[0].to_json()["baseline"], "steps/3-one-process-in-4-float64");
}

TEST(ParallelMatrix, ReportsWhatDoesNotApply) {
  MatrixRequest wanted = request("resnet");
  wanted.strategies = {"sp", "tp2"};
  wanted.precisions = {"float32"};
  const Plan plan = matrix_plan(wanted).plan;
  EXPECT_THAT(step_names(plan), ElementsAre("one-process-float32", "tp2-float32", "verify"));
  const RunState nothing;
  const Verdict verdict = plan.step("verify").checks[0].judge(RunEvidence("/nowhere", plan, nothing));
  EXPECT_EQ(verdict.outcome, Outcome::Skipped);
  EXPECT_EQ(verdict.row, "sp");
  EXPECT_EQ(verdict.reason, "resnet has no sequences");
}

TEST(ParallelMatrix, PlansEveryCaseWithATinySize) {
  for (const char* name : {"gpt", "llama", "glm", "bert", "resnet", "deepfm", "simplenet"}) {
    MatrixRequest wanted = request(name);
    wanted.strategies.clear();
    const Plan plan = matrix_plan(wanted).plan;
    EXPECT_EQ(plan.step("verify").checks.size(), 2 * strategies().size()) << name;
    const auto known = check_types();
    for (const Check& check : plan.step("verify").checks) EXPECT_THAT(known, ::testing::Contains(check.type()));
  }
}

TEST(ParallelMatrix, KeepsFilesAndRunsWholeCases) {
  MatrixRequest wanted = request("gpt");
  wanted.keep = true;
  wanted.tiny = false;
  const Plan plan = matrix_plan(wanted).plan;
  for (const Step& step : plan.steps) EXPECT_THAT(step.files.discard, IsEmpty());
  EXPECT_EQ(config_of(plan, "dp2-float64")["Model"]["hidden_size"], 192);
  EXPECT_THAT(plan.title, Not(HasSubstr("tiny")));
}

TEST(ParallelMatrix, NamesMistakes) {
  const auto refused = [](MatrixRequest wanted) {
    try {
      matrix_plan(wanted);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  MatrixRequest wanted = request("gpt");
  wanted.strategies = {"dp2", "pd2"};
  EXPECT_THAT(refused(wanted), HasSubstr("did you mean"));
  wanted = request("gpt");
  wanted.precisions = {"float16"};
  EXPECT_THAT(refused(wanted), HasSubstr("float16"));
  wanted = request("gpt");
  wanted.num_steps = 0;
  EXPECT_THAT(refused(wanted), HasSubstr("--steps"));
  EXPECT_THAT(refused(request("ocr_det")), HasSubstr("no tiny size"));
  EXPECT_THAT(refused(request("gpt:libtorch::1:2:1")), HasSubstr("chooses the processes itself"));
  wanted = request("gpt");
  wanted.base.sets = {"Global.local_batch_size=6"};
  EXPECT_THAT(refused(wanted), HasSubstr("divides by 4"));
}
