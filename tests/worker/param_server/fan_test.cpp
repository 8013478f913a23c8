#include "param_server/fan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>

namespace assay::ps {

TEST(PsFan, RunsAllAtTheSameTime) {
  Fan fan(4);
  std::barrier together(4);  // passes only when all four are there
  std::atomic<int> sum = 0;
  for (int round = 0; round < 50; ++round) {
    fan.run([&](int index) {
      together.arrive_and_wait();
      sum += index + 1;
    });
    EXPECT_EQ(sum, 10 * (round + 1));
  }
}

TEST(PsFan, ThrowsFailuresAndRunsTheNextRound) {
  Fan fan(3);
  try {
    fan.run([](int index) {
      if (index > 0) throw std::runtime_error(std::to_string(index));
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "1");
  }
  std::atomic<int> count = 0;
  fan.run([&](int) { ++count; });
  EXPECT_EQ(count, 3);
}

}  // namespace assay::ps
