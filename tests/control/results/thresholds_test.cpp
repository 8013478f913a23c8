#include "results/thresholds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "run_folders.h"

using namespace assay;
using ::testing::HasSubstr;

namespace {

class ThresholdsTest : public ::testing::Test {
 protected:
  Thresholds read(const std::string& yaml) {
    write_file_atomic(file_, yaml);
    return Thresholds::read(file_);
  }
  void expect_error(const std::string& yaml, const std::string& words) {
    try {
      read(yaml);
      FAIL() << yaml;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(words));
      EXPECT_THAT(error.what(), HasSubstr("thresholds.yaml"));
    }
  }
  TempFolder folder_;
  fs::path file_ = folder_.path() / "thresholds.yaml";
  Result row_ = result_of("r", "s", 1);  // of cpu, on the host "here"
};

}  // namespace

TEST_F(ThresholdsTest, JudgesEverythingWithoutAFile) { EXPECT_EQ(Thresholds().percent(row_, "p_train"), 5); }

TEST_F(ThresholdsTest, PrefersTheMostSpecificSection) {
  const Thresholds t = read(
      "default: {p_train: 9, e2e_time: 8, peak_memory_bytes: 7}\n"
      "cpu: {p_train: 3, e2e_time: 4}\n"
      "here: {p_train: 2.5}\n"
      "\"Test CPU, 2 cores\": {p_train: 1}\n"
      "acme: {p_core: 6}\n");
  EXPECT_EQ(t.percent(row_, "p_train"), 1);
  EXPECT_EQ(t.percent(row_, "e2e_time"), 4);
  EXPECT_EQ(t.percent(row_, "peak_memory_bytes"), 7);
  EXPECT_FALSE(t.percent(row_, "p_core")) << "not judged";
  row_.vendor = "acme";
  EXPECT_EQ(t.percent(row_, "p_core"), 6);
  row_.system = "";
  EXPECT_EQ(t.percent(row_, "p_train"), 2.5);
}

TEST_F(ThresholdsTest, NamesPlaceAndKeyInErrors) {
  expect_error("default: {p_trian: 5}\n", "did you mean 'p_train'");
  expect_error("default:\n  p_train: five\n", ":2");
  expect_error("default: {p_train: -1}\n", "0 or more");
  expect_error("default: {seed: 1}\n", "no figure that can get worse");
  expect_error("default: 5\n", "must be a map");
  expect_error("{}\n", "no thresholds");
  EXPECT_THROW(Thresholds::read(folder_.path() / "absent.yaml"), ConfigError);
}
