#include "frontends/native/native_chain.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "verify/check.h"

using namespace assay;

namespace {

ResolvedCase resolved(const std::string& name) {
  return resolve_case({.home = ASSAY_SOURCE_DIR, .key = CaseKey::parse(name)});
}

}  // namespace

TEST(NativeChain, HasEveryStepInOrder) {
  const Plan plan = chain_plan(resolved("resnet"), {.train_s = 100, .other_s = 10});
  EXPECT_NO_THROW(plan.validate());
  std::vector<std::string> names;
  for (const Step& step : plan.steps) names.push_back(step.name);
  EXPECT_EQ(names, (std::vector<std::string>{"train", "evaluate", "export", "infer", "verify"}));
  EXPECT_EQ(plan.step("train").limits.time_limit_s, 100);
  EXPECT_EQ(plan.step("infer").limits.time_limit_s, 10);
  EXPECT_EQ(plan.step("infer").needs, std::vector<std::string>{"export"});
  EXPECT_EQ(plan.step("train").files.inputs.at("config.json"), resolved("resnet").worker_json());
}

TEST(NativeChain, RefersToFilesThatOtherStepsWrite) {
  const Plan plan = chain_plan(resolved("simplenet"));
  const auto argv = plan.step("export").command.argv;
  const std::string weights = *(std::find(argv.begin(), argv.end(), "--weights") + 1);
  EXPECT_EQ(weights, plan.folder("train") + "/" + plan.step("train").files.outputs[0]);
}

TEST(NativeChain, UsesOnlyExistingChecks) {
  const auto known = check_types();
  const Plan plan = chain_plan(resolved("resnet"));
  for (const Check& check : plan.step("verify").checks) {
    EXPECT_NE(std::find(known.begin(), known.end(), check.type()), known.end()) << check.to_json();
  }
}

TEST(NativeChain, TakesTheTargetFromTheCase) {
  const ResolvedCase found = resolved("resnet");
  const Plan plan = chain_plan(found);
  const auto& checks = plan.step("verify").checks;
  const auto target = std::find_if(checks.begin(), checks.end(), [](const Check& c) { return c.type() == "target"; });
  ASSERT_NE(target, checks.end());
  EXPECT_EQ(target->to_json()["value"], found.target.value);
}

TEST(NativeChain, RepeatsThePlanOfACase) {
  EXPECT_EQ(chain_plan(resolved("resnet")).hash(), chain_plan(resolved("resnet")).hash());
  EXPECT_NE(chain_plan(resolved("resnet")).hash(), chain_plan(resolved("simplenet")).hash());
}

TEST(NativeChain, NamesWhatIsMissingBeforehand) {
  ResolvedCase found = resolved("resnet");
  const TempFolder folder;
  found.data.path = folder.path() / "nowhere";
  try {
    check_ready(found);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("nowhere"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("apt-get install dataset-fashion-mnist"), std::string::npos);
  }
  found.data.path = folder.path();
  found.data.sha256 = {{"images.gz", "00"}};
  EXPECT_THROW(check_ready(found), DataError);
  std::ofstream(folder.path() / "images.gz") << "x";
  EXPECT_NO_THROW(check_ready(found));
  found.entry = {"python3", "train.py"};
  EXPECT_THROW(check_ready(found), ConfigError);
}

TEST(NativeChain, PutsWeightsOnTheNodeOfRankZero) {
  const ResolvedCase found = resolved("gpt:libtorch::2:4:1");
  const Plan first = train_plan(found, {}, 0);
  EXPECT_EQ(first.steps[0].files.outputs, std::vector<std::string>{"output/model.safetensors"});
  EXPECT_EQ(first.steps[0].ranks.nnodes, 2);
  EXPECT_EQ(first.steps[0].ranks.nproc, 4);
  EXPECT_EQ(first.steps[0].limits.max_restarts, 3);
  const Plan second = train_plan(found, {}, 1);
  EXPECT_TRUE(second.steps[0].files.outputs.empty());
  EXPECT_EQ(second.steps[0].ranks.first_rank(), 4);
  EXPECT_EQ(train_plan(resolved("gpt")).steps[0].limits.max_restarts, 0) << "one process has nobody to lose";
}

TEST(NativeChain, AddsParameterServersToTheTrainers) {
  const auto with_mode = [](int nnodes, const std::string& mode) {
    CaseKey key = CaseKey::parse("deepfm");
    key.nnodes = nnodes;
    key.nproc = 2;
    return resolve_case({.home = ASSAY_SOURCE_DIR, .key = key, .sets = {Setting("Distributed.ps.mode=" + mode)}});
  };
  const ResolvedCase sync = with_mode(1, "sync");
  Plan plan = train_plan(sync);
  EXPECT_EQ(plan.steps[0].ranks.nproc, 3) << "two trainers, one server";
  EXPECT_EQ(plan.steps[0].ranks.num_servers, 1);
  EXPECT_EQ(plan.steps[0].limits.max_restarts, 3);
  set_servers(plan, sync, 4);
  EXPECT_EQ(plan.steps[0].ranks.nproc, 6);
  EXPECT_EQ(plan.steps[0].ranks.num_servers, 4);
  plan.validate();
  EXPECT_EQ(train_plan(resolved("deepfm")).steps[0].ranks.num_servers, 0);
  plan = train_plan(resolved("deepfm"));
  EXPECT_THROW(set_servers(plan, resolved("deepfm"), 2), ConfigError);
  EXPECT_THROW(train_plan(with_mode(2, "sync")), ConfigError);
}
