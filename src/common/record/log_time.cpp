#include "record/log_time.h"

#include <charconv>
#include <cmath>
#include <ctime>

#include "base/text.h"
#include "base/time.h"

namespace assay {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// `count` digits at the start of the text, which moves on; -1 when they are not there.
int take_digits(std::string_view& text, size_t count) {
  if (text.size() < count) return -1;
  int value = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!is_digit(text[i])) return -1;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take_one_of(std::string_view& text, std::string_view wanted) {
  if (text.empty() || wanted.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::tm> take_calendar(std::string_view& text) {
  std::tm at{};
  const auto field = [&](int& target, size_t digits, int low, int high) {
    target = take_digits(text, digits);
    return target >= low && target <= high;
  };
  const bool ok = field(at.tm_year, 4, 1, 9999) && take_one_of(text, "-/") && field(at.tm_mon, 2, 1, 12) &&
                  take_one_of(text, "-/") && field(at.tm_mday, 2, 1, 31) && take_one_of(text, " T") &&
                  field(at.tm_hour, 2, 0, 23) && take_one_of(text, ":") && field(at.tm_min, 2, 0, 59) &&
                  take_one_of(text, ":") && field(at.tm_sec, 2, 0, 60);
  if (!ok) return std::nullopt;
  at.tm_year -= 1900;
  at.tm_mon -= 1;
  at.tm_isdst = -1;
  return at;
}

int64_t take_fraction_us(std::string_view& text) {
  if (text.size() < 2 || (text[0] != '.' && text[0] != ',') || !is_digit(text[1])) return 0;
  text.remove_prefix(1);
  int64_t us = 0;
  int64_t unit = kMicrosPerSecond / 10;
  while (!text.empty() && is_digit(text[0])) {
    us += (text[0] - '0') * unit;
    unit /= 10;
    text.remove_prefix(1);
  }
  return us;
}

// Seconds east of Greenwich, if the text names a zone.
std::optional<int64_t> take_zone_s(std::string_view& text) {
  if (take_one_of(text, "Z")) return 0;
  std::string_view rest = text;
  if (rest.empty() || (rest[0] != '+' && rest[0] != '-')) return std::nullopt;
  const int sign = rest[0] == '-' ? -1 : 1;
  rest.remove_prefix(1);
  const int hours = take_digits(rest, 2);
  take_one_of(rest, ":");
  const int minutes = take_digits(rest, 2);
  if (hours < 0 || minutes < 0) return std::nullopt;
  text = rest;
  return sign * (hours * 3600 + minutes * 60);
}

}  // namespace

std::string datetime_text(int64_t time_us, Zone zone) {
  std::string text;
  if (zone == Zone::Local) {
    text = local_text(time_us);
  } else {
    text = utc_text(time_us);
    text.pop_back();  // Z
    text[text.find('T')] = ' ';
  }
  if (text.ends_with(".000000")) text.resize(text.size() - 7);
  return text;
}

std::string seconds_text(int64_t us) { return python_float(static_cast<double>(us) / kMicrosPerSecond); }

std::optional<int64_t> parse_seconds(std::string_view text) {
  const std::optional<double> seconds = parse_double(text);
  if (!seconds || !(std::fabs(*seconds) < 9e12)) return std::nullopt;
  return std::llround(*seconds * kMicrosPerSecond);
}

std::optional<ParsedTime> parse_time(std::string_view text, Zone zone) {
  std::string_view rest = text;
  std::optional<std::tm> at = take_calendar(rest);
  if (!at) return std::nullopt;
  const int64_t fraction_us = take_fraction_us(rest);
  const std::optional<int64_t> offset_s = take_zone_s(rest);
  int64_t seconds = 0;
  if (!offset_s && zone == Zone::Local) {
    seconds = ::mktime(&*at);
  } else {
    seconds = ::timegm(&*at) - offset_s.value_or(0);
  }
  return ParsedTime{.time_us = seconds * kMicrosPerSecond + fraction_us, .length = text.size() - rest.size()};
}

}  // namespace assay
