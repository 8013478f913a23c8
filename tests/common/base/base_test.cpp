// The small parts of base: errors, JSON, hashing, time, console, signals.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "base/console.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/signals.h"
#include "base/time.h"
#include "base/version.h"

using namespace assay;

TEST(Error, HasTheExitCodesOfTheArchitecture) {
  EXPECT_EQ(exit_code(ErrorKind::Config), 2);
  EXPECT_EQ(exit_code(ErrorKind::Usage), 2);
  EXPECT_EQ(exit_code(ErrorKind::Data), 2);
  EXPECT_EQ(exit_code(ErrorKind::Invalid), 3);
  EXPECT_EQ(exit_code(ErrorKind::Infrastructure), 4);
  EXPECT_EQ(exit_code(ErrorKind::Interrupted), 130);
  EXPECT_EQ(exit_code(ErrorKind::Internal), 1);
}

TEST(Error, FindsItsKindByAWorkersExitCode) {
  for (ErrorKind kind : {ErrorKind::Config, ErrorKind::Data, ErrorKind::OutOfMemory, ErrorKind::NonFinite,
                         ErrorKind::LossSpike, ErrorKind::Communication, ErrorKind::Timeout, ErrorKind::Interrupted}) {
    EXPECT_EQ(failure_kind(worker_exit_code(kind)), kind_name(kind));
  }
  EXPECT_EQ(failure_kind(0), "");
  EXPECT_EQ(failure_kind(137), "killed");
  EXPECT_EQ(failure_kind(99), "unknown");
}

TEST(Error, ChecksStayInReleaseBuilds) { EXPECT_THROW(ASSAY_CHECK(1 + 1 == 3, "arithmetic"), InternalError); }

TEST(Json, KeepsNonFiniteNumbersVisibleAndValid) {
  const Json line = {{"a", json_number(std::nan(""))},
                     {"b", json_number(INFINITY)},
                     {"c", json_number(-INFINITY)},
                     {"d", json_number(0.1)}};
  EXPECT_EQ(to_line(line), R"({"a":"NaN","b":"Infinity","c":"-Infinity","d":0.1})");
  EXPECT_TRUE(std::isnan(number_of(line["a"])));
  EXPECT_EQ(number_of(line["c"]), -INFINITY);
  EXPECT_THROW(number_of("nan?"), DataError);
}

TEST(Json, NamesFileLineAndColumnInErrors) {
  try {
    parse_json("{\n  \"a\": 1,\n  oops\n}", "some.json");
    FAIL();
  } catch (const DataError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("some.json"), std::string::npos);
    EXPECT_NE(text.find("line 3"), std::string::npos) << text;
  }
  EXPECT_THROW(parse_json(std::string(100'000, '['), "deep"), DataError);
  EXPECT_THROW(parse_json("", "empty"), DataError);
}

TEST(Hash, MatchesKnownValues) {
  // FIPS 180-2, appendix B.
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_THROW(sha256_file("/no/such/file"), DataError);
}

TEST(Time, RoundTripsText) {
  const int64_t time = 1794771785339754;
  EXPECT_EQ(utc_text(time), "2026-11-15T19:43:05.339754Z");
  EXPECT_EQ(parse_utc(utc_text(time)), time);
  EXPECT_EQ(parse_utc("2026-11-15 19:43:05.339754+00:00"), time);
  EXPECT_EQ(parse_utc("2026-11-15 19:43:05"), 1794771785000000);
  EXPECT_EQ(utc_text(-1), "1969-12-31T23:59:59.999999Z");
  for (const char* bad : {"", "2026", "2026-13-01T00:00:00Z", "2026-11-15T19:43:05.3+08:00", "xxxx-11-15T00:00:00Z"}) {
    EXPECT_EQ(parse_utc(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(utc_compact(time), "20261115-194305");
}

TEST(Time, PrintsDurations) {
  EXPECT_EQ(duration_text(0.416), "0.42 s");
  EXPECT_EQ(duration_text(75.04), "75.0 s");
  EXPECT_EQ(duration_text(185), "3 min 05 s");
  EXPECT_EQ(duration_text(7800), "2 h 10 min");
  EXPECT_EQ(duration_text(std::nan("")), "unknown");
}

TEST(Console, ShowsRateAndTimeLeftInTheProgressLine) {
  const std::string line = progress_line("train", 500, 1000, 10, "steps", "loss 0.41", 80);
  EXPECT_NE(line.find("50 %"), std::string::npos);
  EXPECT_NE(line.find("10 steps/s"), std::string::npos);
  EXPECT_NE(line.find("00:50 left"), std::string::npos);
  EXPECT_NE(line.find("loss 0.41"), std::string::npos);
  EXPECT_NE(line.find("[#"), std::string::npos);
  EXPECT_LE(line.size(), 80u);
  EXPECT_LE(progress_line("train", 500, 1000, 10, "steps", "loss 0.41", 20).size(), 20u);
  EXPECT_NE(progress_line("train", 500, 0, 10, "steps", "", 80).find("500 steps"), std::string::npos);
}

TEST(Console, PrintsShortNumbers) {
  EXPECT_EQ(short_number(950), "950");
  EXPECT_EQ(short_number(12345), "12.3k");
  EXPECT_EQ(short_number(4560000), "4.56M");
  EXPECT_EQ(short_number(0.5), "0.50");
  EXPECT_EQ(short_number(NAN), "?");
}

TEST(Console, UsesColoursOnlyOnATerminal) {
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(colours_on(stdout));
  ::unsetenv("NO_COLOR");
}

TEST(Signals, RequestAStopFirstAndForceItSecond) {
  const pid_t child = ::fork();
  if (child == 0) {
    catch_stop_signals();
    if (stop_signal() != 0) ::_exit(1);
    ::raise(SIGINT);
    char byte = 0;
    if (stop_signal() != SIGINT || ::read(stop_fd(), &byte, 1) != 1) ::_exit(2);
    ::raise(SIGINT);
    ::_exit(3);
  }
  int raw = 0;
  ::waitpid(child, &raw, 0);
  EXPECT_EQ(WEXITSTATUS(raw), 130);
}

TEST(Version, IsKnown) {
  EXPECT_FALSE(version().empty());
  EXPECT_FALSE(commit().empty());
}
