#include "record/growing_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "record/log_file.h"

using namespace assay;

namespace {

void append(const fs::path& path, std::string_view text) { std::ofstream(path, std::ios::app) << text; }

}  // namespace

TEST(GrowingFile, GivesWholeLinesOnce) {
  TempFolder folder;
  const fs::path path = folder.path() / "log";
  GrowingFile file(path);
  EXPECT_EQ(file.next(), "");
  append(path, "one\ntw");
  EXPECT_EQ(file.next(), "one\n");
  EXPECT_EQ(file.next(), "");
  append(path, "o\nthree\n");
  EXPECT_EQ(file.next(), "two\nthree\n");
  EXPECT_FALSE(file.restarted());
  fs::resize_file(path, 4);
  EXPECT_EQ(file.next(), "one\n");
  EXPECT_TRUE(file.restarted());
}

TEST(GrowingFile, RejectsAFolder) {
  TempFolder folder;
  append(folder.path() / "x", "");
  GrowingFile file(folder.path() / "x" / "below");  // a file is in the way
  EXPECT_THROW(file.next(), DataError);
}

TEST(LogFollower, CountsLinesAcrossCalls) {
  TempFolder folder;
  const fs::path path = folder.path() / "log";
  LogFollower follower(path, {});
  append(path, "hello\n{\"type\":\"message\",\"time_us\":1,\"data\":{}}\n");
  EXPECT_EQ(follower.next().records.size(), 2u);
  append(path, "{\"type\":\"x\n");
  try {
    follower.next();
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("log:3: "), std::string::npos) << error.what();
  }
}
