#include "vendor/environment_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../common/config/temp_home.h"

using namespace assay;
using testing::HasSubstr;

namespace {

std::string environment_error(const std::string& text) {
  return error_of([&] { parse_environment(text, "environment"); });
}

}  // namespace

TEST(EnvironmentFile, ReadsKeysAndValues) {
  const EnvironmentFile read =
      parse_environment("# a\n\nA=1\n  B=two words \r\nC=a=b,c:/d#e\nD=\nE=cost $5\n", "environment");
  EXPECT_EQ(read.variables.at("A"), "1");
  EXPECT_EQ(read.variables.at("B"), "two words");
  EXPECT_EQ(read.variables.at("C"), "a=b,c:/d#e");
  EXPECT_EQ(read.variables.at("D"), "");
  EXPECT_EQ(read.variables.at("E"), "cost $5");
  EXPECT_EQ(read.variables.size(), 5u);
}

TEST(EnvironmentFile, RejectsAnythingElseWithItsLine) {
  EXPECT_THAT(environment_error("A=1\nexport B=2\n"), HasSubstr("environment:2: write KEY=VALUE without 'export'"));
  EXPECT_THAT(environment_error("source x\n"), HasSubstr("environment:1: 'source x' is not KEY=VALUE"));
  EXPECT_THAT(environment_error("1A=2\n"), HasSubstr("environment:1"));
  EXPECT_THAT(environment_error("A =2\n"), HasSubstr("environment:1"));
  EXPECT_THAT(environment_error("A=$HOME/x\n"), HasSubstr("not expanded"));
  EXPECT_THAT(environment_error("A=$(date)\n"), HasSubstr("not expanded"));
  EXPECT_THAT(environment_error("A=`date`\n"), HasSubstr("runs a command"));
  EXPECT_THAT(environment_error("A=\"x\"\n"), HasSubstr("quotes"));
  EXPECT_THAT(environment_error("A=1\nB=2\nA=3\n"), HasSubstr("environment:3: A is set in line 1"));
  EXPECT_THAT(error_of([] { read_environment_file("/nowhere/environment"); }), HasSubstr("no such file"));
}

TEST(EnvironmentFile, WarnsOfSecrets) {
  const EnvironmentFile read = parse_environment("A=1\nHF_TOKEN=abc\nWANDB_API_KEY=\n", "environment");
  ASSERT_EQ(read.warnings.size(), 1u);
  EXPECT_THAT(read.warnings[0], HasSubstr("environment:2: HF_TOKEN looks like a secret"));
  EXPECT_THAT(read.warnings[0], testing::Not(HasSubstr("abc")));
}
