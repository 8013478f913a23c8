// What every registered front-end promises, and whose file is whose.
#include "frontends/front_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/files.h"

using namespace assay;
using testing::HasSubstr;

namespace {

const fs::path kSource = ASSAY_SOURCE_DIR;

class FrontEndsTest : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) {
    const fs::path path = folder_.path() / name;
    make_folder(path.parent_path());
    write_file_atomic(path, text);
    return path;
  }
  std::string error_of(const fs::path& path) {
    try {
      return front_end_for(path).name;
    } catch (const UsageError& error) {
      return error.what();
    }
  }
  TempFolder folder_;
};

}  // namespace

TEST_F(FrontEndsTest, HaveNamesAndSayWhatTheyRecognise) {
  std::set<std::string> names;
  for (const FrontEnd& front_end : front_ends()) {
    EXPECT_TRUE(names.insert(front_end.name).second);
    EXPECT_FALSE(front_end.files.empty());
    EXPECT_FALSE(front_end.recognises(folder_.path() / "missing")) << "and does not throw";
    EXPECT_FALSE(front_end.recognises(folder_.path()));
    EXPECT_FALSE(front_end.recognises(write("binary.bin", std::string("\0\1cases:\n", 9))));
  }
}

TEST_F(FrontEndsTest, RecogniseTheirFiles) {
  EXPECT_EQ(front_end_for(kSource / "cases/simplenet/case.yaml").name, "native");
  EXPECT_EQ(front_end_for(kSource / "cases/simplenet").name, "native");
  EXPECT_EQ(front_end_for(kSource / "cases/resnet/50.yaml").name, "native");
  EXPECT_EQ(front_end_for(write("campaign.yaml", "this: {is broken")).name, "campaign");
  EXPECT_EQ(front_end_for(write("nightly.yml", "# every night\nvendor: cpu\ncases:\n  x: y\n")).name, "campaign");
  EXPECT_EQ(front_end_for(write("json.yaml", R"({"vendor": "cpu", "cases": {"x": null}})")).name, "campaign");
  EXPECT_EQ(front_end_for(write("based.yaml", "_base_: all.yaml\nretries: 2\n")).name, "campaign");
  EXPECT_EQ(front_end_for(write("broken.yaml", "cases: {x: \nvendor: [cpu\n")).name, "campaign");
  EXPECT_EQ(front_end_for(write("cases/mine/case.yaml", "model: mine\n")).name, "native");
}

TEST_F(FrontEndsTest, NameAFileThatNobodyRecognises) {
  EXPECT_THAT(error_of(folder_.path() / "missing.yaml"), HasSubstr("missing.yaml: there is no such file"));
  const std::string error = error_of(write("notes.txt", "cases: none\n"));
  EXPECT_THAT(error, HasSubstr("notes.txt: not a file that assay can run"));
  for (const FrontEnd& front_end : front_ends()) EXPECT_THAT(error, HasSubstr(front_end.files));
  EXPECT_THAT(error_of(write("other.yaml", "services:\n  cases: 3\n")), HasSubstr("not a file that assay can run"));
}

TEST_F(FrontEndsTest, PlanACaseAsTrainDoes) {
  for (const char* name : {"case.yaml", ""}) {
    const fs::path path = kSource / "cases/simplenet" / name;
    const PlannedRun planned = front_end_for(path).plan(path, {.home = kSource});
    EXPECT_EQ(planned.plan.title, "train simplenet on fashion-mnist");
    ASSERT_EQ(planned.plan.steps.size(), 1u);
    EXPECT_EQ(planned.plan.steps[0].kind, StepKind::Train);
    EXPECT_FALSE(planned.plan.site);
    EXPECT_TRUE(planned.check_here);
  }
  const fs::path size = kSource / "cases/resnet/50.yaml";
  EXPECT_THAT(front_end_for(size).plan(size, {.home = kSource}).plan.title, HasSubstr("resnet-50"));
}

TEST_F(FrontEndsTest, SayWhereACaseMustLie) {
  const fs::path path = write("elsewhere/case.yaml", "model: mine\n");
  try {
    front_end_for(path).plan(path, {.home = kSource});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("elsewhere/case.yaml: a case lies in a folder cases/MODEL"));
  }
}

TEST_F(FrontEndsTest, PlanACampaign) {
  const fs::path path = write("campaign.yaml", "vendor: cpu\ncases: {simplenet:libtorch:cpu:1:1:2: /data}\n");
  const PlannedRun planned = front_end_for(path).plan(path, {.home = kSource});
  EXPECT_EQ(planned.plan.site.value().launcher, "local");
  EXPECT_EQ(planned.plan.site.value().hosts.at(0).slots, 1);
  EXPECT_TRUE(planned.data.contains("/data"));
}
