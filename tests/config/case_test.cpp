#include "config/case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

using namespace assay;
using testing::HasSubstr;

TEST(CaseFiles, EveryCaseResolves) {
  const fs::path home = ASSAY_SOURCE_DIR;
  ASSERT_THAT(list_cases(home), testing::IsSupersetOf({"resnet", "simplenet"}));
  for (const std::string& name : list_cases(home)) {
    const ResolvedCase found = resolve_case({.home = home, .key = CaseKey::parse(name)});
    EXPECT_EQ(found.key.model, name);
    EXPECT_EQ(found.division, Division::Closed);
  }
}
