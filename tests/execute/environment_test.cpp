#include "execute/environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
