#include "base/time.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <ctime>

namespace assay {

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

namespace {

struct Split {
  std::tm calendar{};
  int64_t us = 0;
};

Split split_time(int64_t time_us, bool local) {
  Split split;
  std::time_t seconds = time_us / kMicrosPerSecond;
  split.us = time_us % kMicrosPerSecond;
  if (split.us < 0) {
    split.us += kMicrosPerSecond;
    --seconds;
  }
  if (local) {
    ::localtime_r(&seconds, &split.calendar);
  } else {
    ::gmtime_r(&seconds, &split.calendar);
  }
  return split;
}

std::string text(int64_t time_us, bool local, char between) {
  const Split at = split_time(time_us, local);
  return fmt::format("{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}.{:06}", at.calendar.tm_year + 1900, at.calendar.tm_mon + 1,
                     at.calendar.tm_mday, between, at.calendar.tm_hour, at.calendar.tm_min, at.calendar.tm_sec, at.us);
}

}  // namespace

std::string utc_text(int64_t time_us) { return text(time_us, false, 'T') + "Z"; }
std::string local_text(int64_t time_us) { return text(time_us, true, ' '); }

std::string utc_compact(int64_t time_us) {
  const std::tm at = split_time(time_us, false).calendar;
  return fmt::format("{:04}{:02}{:02}-{:02}{:02}{:02}", at.tm_year + 1900, at.tm_mon + 1, at.tm_mday, at.tm_hour,
                     at.tm_min, at.tm_sec);
}

std::optional<int64_t> parse_utc(std::string_view input) {
  const std::string copy(input.substr(0, 40));
  std::tm at{};
  char between = 0;
  int used = 0;
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2d%c%2d:%2d:%2d%n", &at.tm_year, &at.tm_mon, &at.tm_mday, &between,
                  &at.tm_hour, &at.tm_min, &at.tm_sec, &used) != 7) {
    return std::nullopt;
  }
  if ((between != 'T' && between != ' ') || at.tm_mon < 1 || at.tm_mon > 12 || at.tm_mday < 1 || at.tm_mday > 31 ||
      at.tm_hour > 23 || at.tm_min > 59 || at.tm_sec > 60) {
    return std::nullopt;
  }
  at.tm_year -= 1900;
  at.tm_mon -= 1;
  std::string_view rest = std::string_view(copy).substr(static_cast<size_t>(used));
  int64_t us = 0;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    int64_t unit = kMicrosPerSecond / 10;
    while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
      us += (rest[0] - '0') * unit;
      unit /= 10;
      rest.remove_prefix(1);
    }
  }
  if (!rest.empty() && rest != "Z" && rest != "+00:00") return std::nullopt;
  return static_cast<int64_t>(::timegm(&at)) * kMicrosPerSecond + us;
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "unknown";
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace assay
