#include "frontends/campaign/campaign.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "frontends/campaign/campaign_plan.h"
#include "preflight/preflight_file.h"

using namespace assay;
using testing::HasSubstr;

namespace {

constexpr char kSmall[] = R"(campaign: nightly
vendor: cpu
cases:
  simplenet:libtorch:cpu:1:1:2: /data/fashion
)";

class CampaignTest : public ::testing::Test {
 protected:
  fs::path write(const std::string& text) {
    write_file_atomic(folder_.path() / "campaign.yaml", text);
    return folder_.path() / "campaign.yaml";
  }
  Campaign read(const std::string& text) { return read_campaign(write(text)); }
  std::string error_of(const std::string& text) {
    try {
      read(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "(none)";
  }
  TempFolder folder_;
};

}  // namespace

TEST_F(CampaignTest, HasTheUsualDefaults) {
  const Campaign campaign = read(kSmall);
  EXPECT_EQ(campaign.title, "nightly");
  EXPECT_EQ(campaign.site.launcher, "local");
  EXPECT_EQ(campaign.site.division, "closed");
  EXPECT_EQ(campaign.retries, 1);
  EXPECT_EQ(campaign.cases[0].stall_limit_s, kStallSeconds);
  ASSERT_EQ(campaign.cases.size(), 1u);
  EXPECT_EQ(campaign.cases[0].key.text(), "simplenet:libtorch:cpu:1:1:2");
  EXPECT_EQ(campaign.cases[0].data, "/data/fashion");
  EXPECT_THAT(campaign.cases[0].place, HasSubstr("campaign.yaml:4"));
}

TEST_F(CampaignTest, ReadsEverythingThatCanBeSet) {
  const Campaign campaign = read(R"(vendor: cpu
division: open
launcher: ssh
hosts: [node1, {name: node2, address: 10.0.0.2, slots: 4, port: 22}]
ssh: {user: trn, port: 2222, identity_file: keys/id, known_hosts: /etc/known, work_dir: /scratch}
cases:
  a:pytorch_1.13:cpu:2:1:1: {data: d, set: {x.y: 3, z: {w: 1}}, time_limit: 5, stall_limit: 2}
  b:libtorch:cpu:1:4:1:
set: {x.y: 1, x.q: 2}
time_limit: 3600
retries: 0
max_failures: 3
concurrency: 2
lease: 20
monitor: {interval: 0.5}
environment: {A: 1, B: two words}
collect: [output/model.safetensors]
clear_caches: true
master_port: 29500
)");
  EXPECT_EQ(campaign.title, "campaign");
  const Site& site = campaign.site;
  ASSERT_EQ(site.hosts.size(), 2u);
  EXPECT_EQ(site.hosts[1].address, "10.0.0.2");
  EXPECT_EQ(site.hosts[1].slots, 4);
  EXPECT_EQ(site.hosts[0].port, 2222);
  EXPECT_EQ(site.hosts[1].port, 22);
  EXPECT_EQ(site.hosts[1].identity_file, (folder_.path() / "keys/id").string());
  EXPECT_EQ(site.hosts[0].known_hosts, "/etc/known");
  EXPECT_EQ(site.settings.lease_s, 20);
  EXPECT_EQ(site.master_port, 29500);
  EXPECT_EQ(campaign.environment, (std::map<std::string, std::string>{{"A", "1"}, {"B", "two words"}}));
  EXPECT_EQ(campaign.cases[0].data, (folder_.path() / "d").string());
  EXPECT_EQ(campaign.cases[0].settings.to_json(), Json::parse(R"({"x": {"y": 3, "q": 2}, "z": {"w": 1}})"));
  EXPECT_EQ(campaign.cases[0].time_limit_s, 5);
  EXPECT_EQ(campaign.cases[1].time_limit_s, 3600);
  // What the plan keeps is what was read.
  EXPECT_EQ(site_of(to_json(site), "test"), site);
}

TEST_F(CampaignTest, NamesMistakesWithTheirPlace) {
  const auto with = [](const std::string& line) { return kSmall + line + "\n"; };
  EXPECT_THAT(error_of(with("retrys: 1")),
              HasSubstr("campaign.yaml:5: a campaign has no 'retrys' (did you mean 'retries'?)"));
  EXPECT_THAT(error_of(with("retries: -1")), HasSubstr("campaign.yaml:5: retries is from 0 to 100, found -1"));
  EXPECT_THAT(error_of(with("time_limit: 0")), HasSubstr("campaign.yaml:5: time_limit is a number of seconds above 0"));
  EXPECT_THAT(error_of(with("launcher: kubernetes")), HasSubstr("campaign.yaml:5: launcher"));
  EXPECT_THAT(error_of(with("launcher: ssh")), HasSubstr("launcher ssh needs hosts"));
  EXPECT_THAT(error_of(with("hosts: [a]")),
              HasSubstr("campaign.yaml:5: hosts are those of launcher ssh; this is local"));
  EXPECT_THAT(error_of(with("launcher: ssh\nhosts: [a, a]")), HasSubstr("host 'a' is there twice"));
  EXPECT_THAT(error_of(with("launcher: ssh\nhosts: [-oProxyCommand=x]")),
              HasSubstr("is not the name or address of a host"));
  EXPECT_THAT(error_of(with("launcher: ssh\nhosts: [{name: a, slots: 0}]")), HasSubstr("slots is how many devices"));
  EXPECT_THAT(error_of(with("environment: {A B: 1}")), HasSubstr("'A B' is not the name of a variable"));
  EXPECT_THAT(error_of("vendor: cpu\ncases: {simplenet: /d}\n"), HasSubstr("'simplenet' is not whole"));
  EXPECT_THAT(error_of("vendor: cpu\ncases: {a:b:c:0:1:1: /d}\n"), HasSubstr("campaign.yaml:2:"));
  EXPECT_THAT(error_of("vendor: cpu\ncases: {}\n"), HasSubstr("at least one"));
  EXPECT_THAT(error_of("cases: {a:b:c:1:1:1: /d}\n"), HasSubstr("vendor is required"));
  EXPECT_THAT(error_of("vendor: cpu\ncases: {a:b:c:2:1:1: /d}\n"), HasSubstr("needs 2 hosts, the campaign has 1"));
  EXPECT_THAT(error_of("[1, 2]"), HasSubstr("campaign.yaml"));
  EXPECT_THAT(error_of(std::string("\0\xff{", 3)), HasSubstr("campaign.yaml"));
}

TEST_F(CampaignTest, PlansAStepPerRoundAndAJudgement) {
  const PlannedRun made = make_campaign_plan(read(kSmall), ASSAY_SOURCE_DIR);
  std::vector<std::string> names;
  for (const Step& step : made.plan.steps) names.push_back(step.name);
  EXPECT_EQ(names, (std::vector<std::string>{"simplenet-libtorch-cpu-1x1-r1", "simplenet-libtorch-cpu-1x1-r2",
                                             "simplenet-libtorch-cpu-1x1-target"}));
  const Step& second = made.plan.steps[1];
  EXPECT_TRUE(second.ranks.on_hosts);
  EXPECT_EQ(second.measures.round, 2);
  EXPECT_EQ(second.measures.key, "simplenet:libtorch:cpu:1:1:2");
  EXPECT_EQ(second.command.argv,
            (std::vector<std::string>{"assay-worker", "train", "--config",
                                      "steps/2-simplenet-libtorch-cpu-1x1-r2/config.json", "--output",
                                      "steps/2-simplenet-libtorch-cpu-1x1-r2/output"}));
  EXPECT_TRUE(made.data.contains("/data/fashion"));
  EXPECT_EQ(plan_of(to_json(made.plan), "test").hash(), made.plan.hash());
}

namespace {

constexpr char kPatternCase[] = R"(model: quick
framework: pytorch
task: nothing
source: this test
licence: Apache-2.0
entry: [python3, run.py]
data: {name: none, layout: none}
target: {metric: accuracy, value: 0.9, goal: maximize}
config:
  patterns:
)";

}  // namespace

// Until now such a case trained to its end, and the controller died when it looked for records.
TEST_F(CampaignTest, FindsWrongPatternsWhenThePlanIsMade) {
  const fs::path home = folder_.path() / "home";
  make_folder(home / "vendors/fake/quick");
  make_folder(home / "cases/quick");
  write_file_atomic(home / "vendors/fake/vendor.yaml", "name: fake\nhardware:\n  chip: {devices: 8}\n");
  write_file_atomic(home / "vendors/fake/quick/config_chipx1x1.yaml", "# as it is\n");
  const Campaign campaign = read("vendor: fake\ncases:\n  quick:pytorch:chip:1:1:1: /tmp\n");
  const auto plan_with = [&](const std::string& case_text) -> std::string {
    write_file_atomic(home / "cases/quick/case.yaml", case_text);
    try {
      return std::to_string(make_campaign_plan(campaign, home).plan.steps[0].patterns.size()) + " patterns";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  const auto with = [&](const std::string& pattern) { return plan_with(kPatternCase + ("    - " + pattern) + "\n"); };
  EXPECT_EQ(with("{match: 'a(b)', names: [x]}"), "1 patterns");
  EXPECT_THAT(with("{match: 'a(b', names: [x]}"),
              HasSubstr("cases/quick/case.yaml:11:8: config.patterns.0.match: pattern"));
  EXPECT_THAT(with("match: (a)\n      names: [x, y]"), HasSubstr("case.yaml:12:7: config.patterns.0.names: "));
  EXPECT_THAT(with("{match: (a), names: [x], kind: other}"), HasSubstr("case.yaml:11:32: config.patterns.0.kind: "));
  EXPECT_THAT(with("{match: (a), nmaes: [x]}"), HasSubstr("case.yaml:11:20: config.patterns.0.nmaes: "));
  EXPECT_THAT(with("{names: [x]}"), HasSubstr("case.yaml:11:7: config.patterns.0: "));
  EXPECT_THAT(with("5"), HasSubstr("case.yaml:11:7: config.patterns.0: pattern 5: is not a map"));
  std::string scalar = kPatternCase;
  scalar.insert(scalar.size() - 1, " 5");
  EXPECT_THAT(plan_with(scalar), HasSubstr("case.yaml:10:3: config.patterns: is a list of patterns"));
}

TEST_F(CampaignTest, KeepsHostNeedsForAResume) {
  const std::string text = std::string(kSmall) + "  fashion_ddp:pytorch:cpu:1:1:1: /data/other\n";
  const PlannedRun made = make_campaign_plan(read(text), ASSAY_SOURCE_DIR);
  const Json file = Json::parse(to_pretty(preflight_json(made)));
  const PlannedRun back = planned_run_of(made.plan, file, "preflight.json");
  EXPECT_EQ(back.data, made.data);
  EXPECT_EQ(back.versions, made.versions);
  EXPECT_EQ(back.uses, made.uses);
  EXPECT_EQ(back.hardware, "cpu");
  ASSERT_TRUE(made.versions.contains("torch"));
  EXPECT_EQ(made.uses.at("fashion_ddp-pytorch-cpu-1x1"),
            (PlannedRun::Use{.data = "/data/other", .versions = {"python", "torch"}}));

  const PlannedRun rest = rest_of(back, {"simplenet-libtorch-cpu-1x1-r2"}, {"fashion_ddp-pytorch-cpu-1x1"});
  ASSERT_EQ(rest.plan.steps.size(), 2u);
  EXPECT_EQ(rest.data.size(), 1u);
  EXPECT_TRUE(rest.data.contains("/data/fashion")) << "what runs has its data";
  EXPECT_TRUE(rest.versions.empty());
  EXPECT_EQ(rest.plan.site, made.plan.site);
}

TEST_F(CampaignTest, NamesADamagedPreflightFile) {
  for (const char* text :
       {"{}", "[]", "7", R"({"schema": "assay/preflight-v9"})", R"({"schema": "assay/preflight-v1", "hardware": 7})",
        R"({"schema": "assay/preflight-v1", "hardware": "x", "data": [1], "versions": {}, "uses": {}})",
        R"({"schema": "assay/preflight-v1", "hardware": "x", "data": {}, "versions": {}, "uses": 3})"}) {
    try {
      planned_run_of({}, Json::parse(text), "runs/1/preflight.json");
      ADD_FAILURE() << text;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("runs/1/preflight.json: "));
    }
  }
}

TEST_F(CampaignTest, SendsTheSetupWithEverySlurmJob) {
  const fs::path home = folder_.path() / "home";
  make_folder(home / "vendors/mine/simplenet");
  fs::create_directory_symlink(fs::path(ASSAY_SOURCE_DIR) / "cases", home / "cases");
  write_file_atomic(home / "vendors/mine/vendor.yaml", "name: mine\nhardware: {chip: {devices: 2}}\n");
  write_file_atomic(home / "vendors/mine/setup", "#!/bin/sh\n");
  write_file_atomic(home / "vendors/mine/environment", "WHO=mine\n");
  write_file_atomic(home / "vendors/mine/simplenet/config_chipx1x1.yaml", "# as it is\n");
  const std::string text = "vendor: mine\ndivision: open\ncases: {simplenet:libtorch:chip:1:1:1: /data}\n";
  for (const std::string launcher : {"local", "slurm"}) {
    const PlannedRun made = make_campaign_plan(read(text + "launcher: " + launcher + "\n"), home);
    const Site site = made.plan.site.value();
    EXPECT_EQ(made.code.at("code/vendor-mine/setup"), home / "vendors/mine/setup");
    const Step& last = made.plan.steps.back();
    if (launcher == "slurm") {
      EXPECT_EQ(made.plan.steps.size(), 1u);
      EXPECT_TRUE(last.needs.empty());
      EXPECT_EQ(site.settings.setup, std::vector<std::string>{"code/vendor-mine/setup"});
      EXPECT_EQ(site.settings.setup_env.at("WHO"), "mine");
      EXPECT_THAT(plan_text(made.plan), HasSubstr("setup code/vendor-mine/setup, once on every host"));
    } else {
      EXPECT_EQ(made.plan.steps.size(), 2u);
      EXPECT_EQ(last.needs, std::vector<std::string>{"setup"});
      EXPECT_TRUE(site.settings.setup.empty());
    }
  }
}

TEST_F(CampaignTest, SendsALibraryNamedByItsPath) {
  const fs::path library = folder_.path() / "lib" / "own.so";
  make_folder(library.parent_path());
  const std::string text = fmt::format(
      "vendor: cpu\ndivision: open\ncases: {{simplenet:libtorch:cpu:1:1:2: /data}}\nset: {{Global.plugin: {}}}\n",
      library.string());
  const Json::json_pointer plugin("/config/Global/plugin");
  const PlannedRun without = make_campaign_plan(read(text), ASSAY_SOURCE_DIR);
  EXPECT_EQ(without.plan.steps[0].files.inputs.at("config.json").at(plugin), library.string())
      << "hosts may have it there";
  EXPECT_TRUE(without.code.empty());
  write_file_atomic(library, "a library");
  const PlannedRun made = make_campaign_plan(read(text), ASSAY_SOURCE_DIR);
  EXPECT_EQ(made.code, (std::map<std::string, fs::path>{{"code/plugin-1/own.so", library}}));
  for (const Step& step : made.plan.steps) {
    EXPECT_EQ(step.files.inputs.at("config.json").at(plugin), "code/plugin-1/own.so");
    EXPECT_EQ(step.command.code_folders(), std::vector<std::string>{"code/plugin-1"});
  }
  const Plan back = plan_of(to_json(made.plan), "test");
  EXPECT_EQ(back.steps[1].command.code, std::vector<std::string>{"code/plugin-1/own.so"});
  EXPECT_EQ(back.hash(), made.plan.hash());
}

TEST_F(CampaignTest, AllowsOnlyMutableKeysWhenClosed) {
  const std::string text = std::string(kSmall) + "set: {Optimizer.lr.learning_rate: 0.1}\n";
  try {
    make_campaign_plan(read(text), ASSAY_SOURCE_DIR);
    FAIL() << "the learning rate is not mutable";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("campaign.yaml:5"));
    EXPECT_THAT(error.what(), HasSubstr("learning_rate may not be changed"));
  }
  const PlannedRun open = make_campaign_plan(read(text + "division: open\n"), ASSAY_SOURCE_DIR);
  EXPECT_EQ(open.plan.steps.size(), 2u);  // nobody judges a case that was changed
}
