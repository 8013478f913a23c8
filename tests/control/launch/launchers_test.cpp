// What every registered launcher promises to those who choose it by name.
#include "launch/launchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/files.h"
#include "config/yaml.h"

using namespace assay;
using testing::HasSubstr;

namespace {

Site read_site(const std::string& text, const std::string& launcher) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "campaign.yaml", text);
  const Value root = load_yaml(folder.path() / "campaign.yaml", kLayerPlan);
  const SiteFile file(folder.path() / "campaign.yaml", root);
  Site site;
  site.launcher = launcher;
  for (const LauncherKind* kind : launchers()) kind->read(file, site);
  return site;
}

}  // namespace

TEST(Launchers, HaveNamesAndKeysOfTheirOwn) {
  std::set<std::string> names, keys;
  for (const LauncherKind* kind : launchers()) {
    EXPECT_TRUE(names.insert(kind->name()).second) << kind->name();
    for (const std::string& key : kind->keys()) EXPECT_TRUE(keys.insert(key).second) << key;
    EXPECT_EQ(&launcher_named(kind->name()), kind);
  }
  EXPECT_EQ(launcher_names(), (std::vector<std::string>{"local", "ssh", "slurm"}));
}

TEST(Launchers, MakeALauncherOfTheirNameFromWhatTheyRead) {
  for (const LauncherKind* kind : launchers()) {
    const std::string text = kind->name() == "ssh" ? "hosts: [a, b]\n" : "vendor: cpu\n";
    const Site site = read_site(text, kind->name());
    // A plan keeps it as JSON: nothing that the launcher needs may be lost there.
    const Site resumed = site_of(to_json(site), "plan.json");
    EXPECT_EQ(resumed, site);
    EXPECT_EQ(kind->make(resumed)->name(), kind->name());
    EXPECT_TRUE(kind->probe(resumed));
    EXPECT_EQ(kind->chooses_hosts(), site.hosts.empty()) << "who chooses hosts has none before";
  }
}

TEST(Launchers, PlaceStepsOnTheFirstDevicesOfEveryHost) {
  Site site;
  site.concurrency = 2;
  site.hosts = {{.name = "a", .slots = 8}, {.name = "b", .slots = 3, .devices = {6, 2, 4}}};
  const auto places = launcher_named("ssh").places(site, {.nnodes = 1, .nproc = 2});
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].devices, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(places[1].devices, (std::vector<int>{2, 4, 6}));
}

TEST(Launchers, RejectAnUnknownName) {
  try {
    launcher_named("slurn");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("'slurn' is not a launcher (did you mean 'slurm'?); there are local, ssh, slurm"));
  }
}

TEST(Launchers, NameTheLineOfAMistake) {
  const auto error_of = [](const std::string& text, const std::string& launcher) -> std::string {
    try {
      read_site(text, launcher);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "(none)";
  };
  EXPECT_THAT(error_of("ssh:\n  port: 99999\n", "ssh"), HasSubstr("campaign.yaml:2: ssh.port is not a port"));
  EXPECT_THAT(error_of("ssh:\n  usr: x\n", "local"), HasSubstr("campaign.yaml:2"));
  EXPECT_THAT(error_of("slurm:\n  partiton: x\n", "local"), HasSubstr("did you mean 'partition'"));
  EXPECT_THAT(error_of("devices: [1, 1]\n", "local"), HasSubstr("campaign.yaml:1: device 1 is there twice"));
  EXPECT_THAT(error_of("devices: [1]\n", "slurm"), HasSubstr("devices stands with each host"));
  EXPECT_THAT(error_of("hosts: []\n", "ssh"), HasSubstr("launcher ssh needs hosts"));
}
