#include "vendor/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../common/config/temp_home.h"
#include "base/text.h"

using namespace assay;
using testing::AllOf;
using testing::HasSubstr;

namespace {

constexpr char kCheckedCase[] = R"(model: tiny
target: {metric: accuracy, value: 0.9}
mutable: [Global.local_batch_size]
config:
  Global: {local_batch_size: 32}
  Model: {name: tiny, blocks: [1, 2, 3]}
  Data: {Train: {dataset: {name: idx_images}}}
  Optimizer: {name: SGD, lr: {name: constant, learning_rate: 0.1}}
)";

struct CheckedHome : TempHome {
  CheckedHome() {
    write("cases/tiny/case.yaml", kCheckedCase);
    write("vendors/acme/vendor.yaml", "name: acme\nhardware: {X1: }\n");
  }
  std::string result() const {
    std::string out;
    for (const VendorCheck& check : check_vendor(path(), "acme", path() / "plugins")) {
      out += (check.passed ? "pass " : "FAIL ") + check.check + "\n";
      for (const std::string& problem : check.problems) out += "  " + problem + "\n";
    }
    return out;
  }
};

}  // namespace

TEST(VendorCheck, PassesAGoodVendor) {
  const CheckedHome home;
  home.write("vendors/acme/tiny/config_X1x1x8.yaml", "vendor: acme\ntrain_batch_size: 64\n");
  home.write("vendors/acme/tiny/common.yaml", "anything: goes\n");
  EXPECT_EQ(home.result(), "pass vendor.yaml\npass tiny/config_X1x1x8\n");
}

TEST(VendorCheck, NamesEveryImmutableKeyWithItsLine) {
  const CheckedHome home;
  home.write("vendors/acme/tiny/config_X1x1x8.yaml",
             "vendor: acme\ntarget:\n  value: 0.1\nlr: 0.5\ntrain_batch_size: 8\n");
  const std::string result = home.result();
  EXPECT_THAT(result, HasSubstr("FAIL tiny/config_X1x1x8"));
  EXPECT_THAT(result, HasSubstr("  vendors/acme/tiny/config_X1x1x8.yaml:3: target.value is not mutable"));
  EXPECT_THAT(result, HasSubstr("  vendors/acme/tiny/config_X1x1x8.yaml:4: Optimizer.lr.learning_rate is not mutable"));
  EXPECT_THAT(result, testing::Not(HasSubstr("local_batch_size")));
}

TEST(VendorCheck, ReportsAllProblemsAtOnce) {
  const CheckedHome home;
  home.write("vendors/acme/tiny/config_X1x1x8.yaml", "unknown_key: 1\n");
  home.write("vendors/acme/tiny/config_X2x1x1.yaml", "vendor: acme\n");
  home.write("vendors/acme/tiny/config_bad.yaml", "");
  home.write("vendors/acme/tinny/config_X1x1x1.yaml", "");
  home.write("vendors/acme/setup", "#!/bin/sh\n");
  home.write("vendors/acme/tiny/environment", "export A=1\n");
  home.write("vendors/acme/plugin/acme.cpp", "");
  const std::string result = home.result();
  EXPECT_THAT(result, AllOf(HasSubstr("FAIL setup\n  vendors/acme/setup is not executable"),
                            HasSubstr("FAIL plugin\n  vendors/acme/plugin is not built"),
                            HasSubstr("config_X1x1x8.yaml:1: unknown_key is not a known key"),
                            HasSubstr("config_X2x1x1.yaml: vendor.yaml has no hardware 'X2'"),
                            HasSubstr("config_bad.yaml: the name is not config_"),
                            HasSubstr("there is no case 'tinny' (did you mean 'tiny'?)"),
                            HasSubstr("FAIL tiny/environment\n  vendors/acme/tiny/environment:1:")));
}

TEST(VendorCheck, RequiresVendorYaml) {
  const CheckedHome home;
  fs::remove(home.path() / "vendors/acme/vendor.yaml");
  EXPECT_THAT(home.result(), HasSubstr("FAIL vendor.yaml\n  vendors/acme/vendor.yaml is missing"));
}

// What is shipped must be right.
TEST(VendorCheck, PassesTheVendorsOfThisRepository) {
  for (const std::string& vendor : list_vendors(ASSAY_SOURCE_DIR)) {
    const fs::path plugins = fs::path(ASSAY_BINARY_DIR) / "bin/plugins";
    for (const VendorCheck& check : check_vendor(ASSAY_SOURCE_DIR, vendor, plugins)) {
      // Plugins need libtorch; tests/cli/check_vendor_test.py looks at them.
      if (check.check == "plugin" || vendor == "reference") continue;
      EXPECT_TRUE(check.passed) << vendor << " " << check.check << ": " << join(check.problems, "; ");
    }
  }
}
