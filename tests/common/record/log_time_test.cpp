#include "record/log_time.h"

#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>

using namespace assay;

namespace {

// From Python: datetime(2026, 11, 15, 19, 43, 5, 339754, tzinfo=timezone.utc).timestamp()
constexpr int64_t kTime = 1794771785339754;

class LogTime : public testing::Test {
 protected:
  LogTime() {
    ::setenv("TZ", "CST-8", 1);
    ::tzset();
  }
  ~LogTime() override {
    ::unsetenv("TZ");
    ::tzset();
  }
};

int64_t read(const char* text, Zone zone = Zone::Local) {
  const auto parsed = parse_time(text, zone);
  return parsed ? parsed->time_us : -1;
}

}  // namespace

TEST_F(LogTime, Writes) {
  EXPECT_EQ(datetime_text(kTime, Zone::Utc), "2026-11-15 19:43:05.339754");
  EXPECT_EQ(datetime_text(kTime, Zone::Local), "2026-11-16 03:43:05.339754");
  EXPECT_EQ(datetime_text(kTime - 339754, Zone::Utc), "2026-11-15 19:43:05");
  EXPECT_EQ(seconds_text(kTime), "1794771785.339754");
  EXPECT_EQ(seconds_text(7), "7e-06");
  EXPECT_EQ(seconds_text(0), "0.0");
}

TEST_F(LogTime, ReadsEveryFormSeenInLogs) {
  EXPECT_EQ(read("2026-11-15 19:43:05.339754", Zone::Utc), kTime);
  EXPECT_EQ(read("2026-11-15 19:43:05.339754+00:00"), kTime);
  EXPECT_EQ(read("2026-11-15T19:43:05.339754Z"), kTime);
  EXPECT_EQ(read("2026-11-16 03:43:05.339754"), kTime);
  EXPECT_EQ(read("2026-11-16 03:43:05.339754+08:00", Zone::Utc), kTime);
  EXPECT_EQ(read("2026-11-16 03:43:05.339754+0800", Zone::Utc), kTime);
  EXPECT_EQ(read("2026-11-15 14:13:05.339754-05:30"), kTime);
  EXPECT_EQ(read("2026/11/16 03:43:05"), kTime - 339754);
  EXPECT_EQ(read("2026-11-16 03:43:05,339"), kTime - 754);
  EXPECT_EQ(parse_time("2026/11/16 03:43:05] ppocr", Zone::Utc)->length, 19u);
  EXPECT_EQ(parse_time("2026-11-16 03:43:05, next", Zone::Utc)->length, 19u);
}

TEST_F(LogTime, RefusesEverythingElse) {
  for (const char* bad : {"", "2026", "2026-11-15", "2026-13-15 00:00:00", "2026-11-32 00:00:00", "2026-11-15 24:00:00",
                          "2026-11-15 0:00:00", "-026-11-15 00:00:00", "2026-11-15_00:00:00", "0000-01-01 00:00:00"}) {
    EXPECT_FALSE(parse_time(bad, Zone::Utc)) << bad;
  }
  for (const char* bad : {"", "x", "nan", "inf", "1e300", "1.5x"}) EXPECT_FALSE(parse_seconds(bad)) << bad;
  EXPECT_EQ(parse_seconds("1794771785.339754"), kTime);
  EXPECT_EQ(parse_seconds("7e-06"), 7);
}
