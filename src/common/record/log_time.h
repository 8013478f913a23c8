// The forms that loggers write time in, and the way back to microseconds since 1970 UTC. A time without a zone is taken
// as local time of this machine, because that is what Python's loggers write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

enum class Zone { Utc, Local };

// str(datetime): "2026-11-15 19:43:05.339754", without the fraction when it is zero.
std::string datetime_text(int64_t time_us, Zone zone);
// Seconds in Python's shortest float form: "1794771785.339754", "7e-06".
std::string seconds_text(int64_t us);
std::optional<int64_t> parse_seconds(std::string_view text);

struct ParsedTime {
  int64_t time_us = 0;
  size_t length = 0;  // how much of the text it took
};
// A time at the start of the text: 2026-11-15 19:43:05, with T, with slashes, with a fraction after a point or a comma,
// with a zone (Z, +08:00, +0800). `zone` is for a time that names none.
std::optional<ParsedTime> parse_time(std::string_view text, Zone zone);

}  // namespace assay
