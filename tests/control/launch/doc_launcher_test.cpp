// The launcher of docs/extend/add-a-launcher.md, built as the page says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/yaml.h"
#include "job_support.h"
#include "launch/doc_wrapped/doc_wrapped_kind.h"

using namespace assay;

namespace {

Site wrapped_site(const fs::path& path) {
  const Value root = load_yaml(path, kLayerPlan);
  Site site;
  site.launcher = root.child("launcher")->as_string();
  doc_wrapped_kind()->read(SiteFile(path, root), site);
  return site;
}

}  // namespace

TEST(DocLauncher, RunsRanksAsItsPageSays) {
  const Site site = wrapped_site(fs::path(ASSAY_DOC_LAUNCHER) / "campaign.yaml");
  EXPECT_EQ(site.launcher, doc_wrapped_kind()->name());
  const Site resumed = site_of(to_json(site), "plan.json");
  EXPECT_EQ(resumed, site);
  const auto launcher = doc_wrapped_kind()->make(resumed);
  const JobFolder folder;
  const auto step = launcher->start(folder.request("echo wrapped: $WRAPPED, rank $RANK", 1, 2));
  EXPECT_TRUE(end_of(*step).status.ok());
  EXPECT_EQ(folder.log(1), "wrapped: yes, rank 1\n");
  EXPECT_TRUE(doc_wrapped_kind()->probe(resumed)(site.hosts[0], {"assay", "--version"}, 30).status.ok());
}

TEST(DocLauncher, NamesTheLineOfAMistake) {
  const TempFolder folder;
  const fs::path path = folder.path() / "campaign.yaml";
  write_file_atomic(path, "launcher: doc_wrapped\ndoc_wrapped:\n  comand: [env]\n");
  EXPECT_THROW(wrapped_site(path), ConfigError);
}
