#include "plan/plan.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

using namespace assay;

namespace {

Step command(const std::string& name, std::vector<std::string> needs = {}) {
  Step step;
  step.name = name;
  step.needs = std::move(needs);
  step.command.argv = {"true"};
  return step;
}

Plan example() {
  Plan plan{.title = "an example", .case_key = "resnet:libtorch:CPU:1:1:1", .steps = {command("train")}};
  plan.steps[0].kind = StepKind::Train;
  plan.steps[0].limits.time_limit_s = 60;
  plan.steps[0].command.env = {{"A", "1"}};
  plan.steps[0].files.inputs = {{"config.json", {{"x", 1}}}};
  plan.steps[0].files.outputs = {"output/model.safetensors"};
  Step verify;
  verify.name = "verify";
  verify.kind = StepKind::Verify;
  verify.needs = {"train"};
  verify.checks = {Check::parse({{"type", "loss_falls"}, {"records", "steps/1-train/records.jsonl"}})};
  plan.steps.push_back(verify);
  return plan;
}

void expect_refused(const Plan& plan, const std::string& part) {
  try {
    plan.validate();
    FAIL() << part;
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace

TEST(Plan, RoundTripsJson) {
  const Plan plan = example();
  const Plan back = plan_of(to_json(plan), "here");
  EXPECT_EQ(to_json(back), to_json(plan));
  EXPECT_EQ(back.hash(), plan.hash());
  EXPECT_EQ(plan.folder("verify"), "steps/2-verify");
}

TEST(Plan, KeepsNodesRestartsAndDiscards) {
  Plan plan = example();
  const std::string before = plan.hash();
  EXPECT_FALSE(to_json(plan)["steps"][0].contains("nnodes")) << "plans of earlier versions keep their hash";
  plan.steps[0].ranks.nproc = 4;
  plan.steps[0].ranks.nnodes = 2;
  plan.steps[0].ranks.node_rank = 1;
  plan.steps[0].limits.max_restarts = 3;
  plan.steps[0].checks = {Check::parse({{"type", "same_training"},
                                        {"measured", "steps/1-train"},
                                        {"baseline", "steps/1-train"},
                                        {"steps", 1},
                                        {"max_relative", 0.1}})};
  plan.steps[1].files.discard = {"steps/1-train/output/checkpoints"};
  const Plan back = plan_of(to_json(plan), "here");
  EXPECT_EQ(to_json(back), to_json(plan));
  EXPECT_NE(plan.hash(), before);
  EXPECT_EQ(back.steps[0].ranks.first_rank(), 4);
  EXPECT_EQ(back.steps[0].ranks.world_size(), 8);
  EXPECT_EQ(back.steps[0].limits.max_restarts, 3);
  EXPECT_EQ(back.steps[0].checks.size(), 1u);
  const std::string text = plan_text(plan);
  EXPECT_NE(text.find("ranks    4 to 7 of 8, on node 1 of 2"), std::string::npos) << text;
  EXPECT_NE(text.find("restarts at most 3"), std::string::npos) << text;
  EXPECT_NE(text.find("discards steps/1-train/output/checkpoints"), std::string::npos) << text;
  plan.steps[0].ranks.node_rank = 2;
  expect_refused(plan, "node 2 of 2");
  plan = example();
  for (const char* path : {"journal.jsonl", "steps/../plan.json", "/etc"}) {
    plan.steps[1].files.discard = {path};
    expect_refused(plan, path);
  }
}

TEST(Plan, PutsParameterServersLast) {
  Plan plan = example();
  const std::string before = plan.hash();
  plan.steps[0].ranks.nproc = 4;
  plan.steps[0].ranks.num_servers = 2;
  const Plan back = plan_of(to_json(plan), "here");
  EXPECT_EQ(to_json(back), to_json(plan));
  EXPECT_EQ(back.steps[0].ranks.num_servers, 2);
  EXPECT_NE(plan_text(plan).find("servers  2 of them, for 2 trainers"), std::string::npos) << plan_text(plan);
  plan.steps[0].ranks.num_servers = 4;
  expect_refused(plan, "4 parameter servers among 4 processes");
  plan.steps[0].ranks.num_servers = 2;
  plan.steps[0].ranks.nnodes = 2;
  expect_refused(plan, "on 2 hosts");
}

TEST(Plan, ChangesItsHashWithEveryChange) {
  const std::string hash = example().hash();
  Plan changed = example();
  changed.steps[0].command.argv.push_back("--more");
  EXPECT_NE(changed.hash(), hash);
  changed = example();
  changed.steps[0].limits.time_limit_s = 61;
  EXPECT_NE(changed.hash(), hash);
  changed = example();
  changed.steps[1].checks[0] = Check::parse({{"type", "loss_falls"}, {"records", "other"}});
  EXPECT_NE(changed.hash(), hash);
}

TEST(Plan, RefusesChecksAndPatternsThatAreWrongWhenItIsRead) {
  const auto complaint = [](const Json& changed) -> std::string {
    try {
      plan_of(changed, "plan.json");
    } catch (const DataError& error) {
      return error.what();
    }
    return "(none)";
  };
  Json plan = to_json(example());
  plan["steps"][1]["checks"][0].erase("records");
  EXPECT_EQ(complaint(plan), "plan.json: step 'verify': check 'loss_falls': records is missing");
  plan = to_json(example());
  plan["steps"][0]["patterns"] = {{{"match", "("}, {"names", {"a"}}}};
  EXPECT_NE(complaint(plan).find("plan.json: step 'train': pattern"), std::string::npos) << complaint(plan);
  plan["steps"][0]["patterns"] = {{{"match", "(x)"}, {"names", {"a"}}, {"of an earlier version", 1}}};
  EXPECT_EQ(complaint(plan), "(none)");
}

TEST(Plan, NamesMistakes) {
  Plan plan{.title = "t", .case_key = "", .steps = {command("a"), command("a")}};
  expect_refused(plan, "two steps");
  plan.steps = {command("a", {"b"}), command("b")};
  expect_refused(plan, "'b', which is not an earlier step");
  plan.steps = {command("../etc")};
  expect_refused(plan, "../etc");
  plan.steps = {command("a")};
  plan.steps[0].command.argv.clear();
  expect_refused(plan, "no command");
  plan.steps = {command("a")};
  plan.steps[0].files.inputs = {{"../../x", 1}};
  expect_refused(plan, "outside");
  plan.steps = {command("a")};
  plan.steps[0].files.outputs = {"/etc/passwd"};
  expect_refused(plan, "outside");
  plan.steps = {command("a")};
  plan.steps[0].limits.time_limit_s = 0;
  expect_refused(plan, "time limit");
  plan.steps = {command("a")};
  plan.steps[0].kind = StepKind::Verify;
  expect_refused(plan, "nothing to check");
}

TEST(Plan, ShowsCommandsAndDependencies) {
  const std::string text = plan_text(example());
  EXPECT_NE(text.find("1. train (train)"), std::string::npos);
  EXPECT_NE(text.find("runs     true"), std::string::npos);
  EXPECT_NE(text.find("within   60.0 s"), std::string::npos);
  EXPECT_NE(text.find("needs    train"), std::string::npos);
  EXPECT_NE(text.find("2 steps"), std::string::npos);
}

TEST(Plan, SurvivesDamagedPlans) {
  const std::string good = to_line(to_json(example()));
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 1 + round % 3; ++i) {
      const size_t at = random() % bad.size();
      if (round % 2) {
        bad[at] = "{}[],:\"0a-"[random() % 10];
      } else {
        bad.erase(at, 1 + random() % 5);
      }
    }
    try {
      plan_of(parse_json(bad, "fuzz"), "fuzz");
    } catch (const DataError&) {
    }
  }
  EXPECT_THROW(plan_of(Json::array(), "x"), DataError);
  EXPECT_THROW(plan_of({{"schema", "assay/plan-v99"}}, "x"), DataError);
}
