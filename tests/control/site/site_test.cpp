#include "site/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/plan.h"

using namespace assay;
using testing::HasSubstr;

namespace {

// As version 0.9 wrote it: without peak_flops, setup, setup_environment and staged.
constexpr char kEarlierSite[] =
    R"({"launcher": "slurm", "vendor": "cpu", "division": "open", "hosts": [], "devices": [],
  "slurm": {"partition": "p", "account": "", "options": ["--exclusive"]}, "visible_devices": "",
  "monitor_command": [], "device_command": [], "device_count": 0, "concurrency": 2, "max_failures": 3, "lease_s": 60.0,
  "monitor_interval_s": 1.0, "master_port": 0, "clear_caches": false})";

std::string site_error(const char* text) {
  try {
    site_of(Json::parse(text), "plan.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return "(none)";
}

}  // namespace

TEST(Site, KeepsTheJsonOfEarlierVersions) {
  const Json earlier = Json::parse(kEarlierSite);
  const Site site = site_of(earlier, "plan.json");
  EXPECT_EQ(site.launcher, "slurm");
  EXPECT_EQ(site.concurrency, 2);
  EXPECT_EQ(site.sections.at("slurm").at("partition"), "p");
  EXPECT_EQ(to_json(site), earlier) << "or the hash of an earlier plan would not be that of its journal";
}

TEST(Site, KeepsWhatLaunchersAddToIt) {
  Site site;
  site.launcher = "k8s";
  site.hosts = {{.name = "a", .address = "10.0.0.1", .slots = 2, .devices = {4, 5}, .user = "me", .port = 2222}};
  site.settings = {.visible_devices = "X", .lease_s = 5, .setup = {"prepare"}, .setup_env = {{"A", "b"}}};
  site.sections["k8s"] = {{"namespace", "chips"}};
  site.staged = {{"/data/x", "12ab"}};
  EXPECT_EQ(site_of(to_json(site), "test"), site);
}

TEST(Site, RejectsDamagedFields) {
  for (const char* text : {"7", "{}", R"({"launcher": 3})", R"({"launcher": "ssh", "hosts": [{"name": "a"}]})",
                           R"({"launcher": "ssh", "lease_s": "x"})"}) {
    EXPECT_THAT(site_error(text), HasSubstr("plan.json: the campaign lacks a field, or one has the wrong type"))
        << text;
  }
}

TEST(Site, NumbersDevicesFromZeroUnlessTheyAreNamed) {
  EXPECT_EQ((Host{.name = "a", .slots = 3}.usable_devices()), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ((Host{.name = "a", .slots = 2, .devices = {7, 4}}.usable_devices()), (std::vector<int>{7, 4}));
}

TEST(Site, StandsInThePlanUnderTheNameCampaign) {
  Plan plan{.title = "t", .case_key = "", .steps = {}};
  EXPECT_FALSE(to_json(plan).contains("campaign"));
  plan.site = site_of(Json::parse(kEarlierSite), "test");
  EXPECT_EQ(to_json(plan).at("campaign"), Json::parse(kEarlierSite));
  EXPECT_EQ(plan_of(to_json(plan), "plan.json").hash(), plan.hash());
}
