#include "monitor/environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <regex>

#include "base/hash.h"

using namespace assay;

TEST(Environment, IsKnownHere) {
  const Json environment = describe_environment();
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  EXPECT_EQ(environment["host"]["name"], name);
  EXPECT_GT(environment["processor"]["cores"], 0);
  EXPECT_GT(environment["memory"]["total_bytes"], 1'000'000);
  EXPECT_TRUE(environment["host"]["kernel"].is_string());
  EXPECT_TRUE(environment["assay"]["version"].is_string());
}

TEST(Environment, SaysWhatRan) {
  const Json environment = describe_environment();
  EXPECT_EQ(environment["assay"]["program_sha256"], sha256_file("/proc/self/exe"));
  for (const char* library : {"glibc", "openssl", "sqlite", "fmt"}) {
    const Json& version = environment["libraries"][library];
    ASSERT_TRUE(version.is_string()) << library;
    EXPECT_TRUE(std::regex_search(version.get<std::string>(), std::regex("^[0-9]+\\.[0-9]+"))) << version;
  }
  for (const Json& entry : environment["host"]["addresses"]) {
    EXPECT_NE(entry["interface"], "lo");
    EXPECT_TRUE(entry["address"].is_string());
  }
  for (const auto& [driver, version] : environment["drivers"].items()) {
    EXPECT_TRUE(version.is_null() || !version.get<std::string>().empty()) << driver;
  }
}
