#include "results/step_times.h"

#include <gtest/gtest.h>

#include "record/keys.h"
#include "run/evidence.h"

using namespace assay;

namespace {

Record timed(int64_t time_ms, std::vector<int64_t> step, Json data) {
  Record record;
  record.type = Record::Type::Metrics;
  record.time_us = time_ms * 1000;
  record.step = std::move(step);
  record.data = std::move(data);
  return record;
}

Record timed_event(int64_t time_ms, const char* name, Json data = Json::object()) {
  Record record;
  record.type = Record::Type::Event;
  record.time_us = time_ms * 1000;
  record.name = name;
  record.data = std::move(data);
  return record;
}

}  // namespace

TEST(StepTimes, ReadWhatTheProgramReports) {
  std::vector<Record> records;
  for (int i = 1; i <= 4; ++i) {
    records.push_back(
        timed(i, {1, 10 * i}, {{"global_step", 10 * i}, {"train.data_time", 0.01}, {"train.compute_time", 0.09}}));
  }
  const StepSeconds steps = step_seconds(records);
  EXPECT_EQ(steps.seconds, (std::vector<double>(4, 0.01 + 0.09)));
  EXPECT_EQ(steps.source, "train.data_time + train.compute_time");
  EXPECT_EQ(steps.steps_each, 10);
  EXPECT_EQ(step_seconds({timed(1, {1, 1}, {{"batch_cost", 0.5}})}).source, "batch_cost");
}

TEST(StepTimes, FollowFromTheTimeBetweenRecords) {
  const std::vector<Record> records = {
      timed(1000, {1, 10}, {{"loss", 1}}),
      timed(3000, {1, 20}, {{"loss", 1}}),
      timed(4000, {1, 30}, {{"loss", 1}}),
      timed(90000, {1}, {{"val.metric", 0.5}}),  // an evaluation: what follows it is no time of steps
      timed(91000, {1, 40}, {{"loss", 1}}),
      timed(92500, {1, 50}, {{"loss", 1}}),
      timed(99000, {2, 1}, {{"loss", 1}})};  // another epoch: unknown how many steps lie between
  const StepSeconds steps = step_seconds(records);
  EXPECT_EQ(steps.seconds, (std::vector<double>{0.2, 0.1, 0.15}));
  EXPECT_EQ(steps.source, "time between records");
  EXPECT_EQ(steps.steps_each, 10);
}

TEST(StepTimes, ExistForProgramsWithoutEpochs) {
  std::vector<Record> records;
  for (int i = 1; i <= 3; ++i) records.push_back(timed(0, {20 * i}, {{"global_step", 20 * i}, {"step_time", 0.5 * i}}));
  records.push_back(timed(0, {1}, {{"step_time", 9.0}}));  // an epoch's summary is no step
  const StepSeconds steps = step_seconds(records);
  EXPECT_EQ(steps.seconds, (std::vector<double>{0.5, 1.0, 1.5}));
  EXPECT_EQ(steps.steps_each, 20);
  const std::vector<Record> rates = {timed(0, {1}, {{"global_step", 1}, {"train.ips", 100.0}}),
                                     timed(0, {2}, {{"global_step", 2}, {"train.ips", 100.0}}),
                                     timed(0, {1, 3}, {{"train.ips", 100.0}})};
  EXPECT_EQ(logged_throughput(rates), 100.0);
  EXPECT_TRUE(step_seconds(rates).seconds.empty());
}

TEST(StepTimes, FollowFromFlagPerfsEvents) {
  const std::vector<Record> records = {timed_event(1000, keys::kStepEnd), timed_event(1250, keys::kStepEnd),
                                       timed_event(1500, keys::kStepEnd)};
  EXPECT_EQ(step_seconds(records).seconds, (std::vector<double>{0.25, 0.25}));
}

TEST(StepTimes, VoidWhatLiesBeyondTheResumedCheckpoint) {
  const auto at = [](int step, double seconds) {
    return timed(step, {1, step}, {{"global_step", step}, {"step_time", seconds}});
  };
  const std::vector<Record> records = {at(1, 1.0),
                                       at(2, 9.0),
                                       at(3, 9.0),
                                       timed_event(5000, keys::kInitStart),
                                       timed_event(5001, keys::kResumed, {{"global_step", 1}}),
                                       at(2, 2.0),
                                       at(3, 3.0)};
  EXPECT_EQ(step_seconds(without_voided(records)).seconds, (std::vector<double>{1, 2, 3}));
}

TEST(StepTimes, IgnoreGarbage) {
  const std::vector<Record> records = {timed(0, {1, 1}, {{"step_time", "80.83.2%"}}),
                                       timed(0, {1, 2}, {{"step_time", -1}}),
                                       timed(0, {1, 3}, {{"step_time", "NaN"}}),
                                       timed(0, {1, 4}, Json::array({1})),
                                       timed(0, {}, {{"step_time", 1}}),
                                       timed(-5, {1, 4}, nullptr)};
  EXPECT_TRUE(step_seconds(records).seconds.empty());
  EXPECT_TRUE(step_time_json(step_seconds(records)).is_null());
}

TEST(StepTimes, GiveTheHarmonicMeanAfterTheWarmUp) {
  std::vector<Record> records = {timed(1, {1, 1}, {{"train.ips", 1.0}})};  // warm-up
  EXPECT_FALSE(logged_throughput(records));
  records.push_back(timed(2, {1, 2}, {{"train.ips", 100.0}}));
  records.push_back(timed(3, {1, 3}, {{"train.ips", 300.0}}));
  EXPECT_DOUBLE_EQ(*logged_throughput(records), 150);
}
