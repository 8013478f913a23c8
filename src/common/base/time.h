// Wall-clock time in UTC, in microseconds, and elapsed time that no clock change disturbs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

// Microseconds since 1970-01-01 UTC.
inline constexpr int64_t kMicrosPerSecond = 1'000'000;

int64_t now_us();

std::string utc_text(int64_t time_us);     // 2026-11-15T19:43:05.339754Z
std::string utc_compact(int64_t time_us);  // 20261115-194305, for names
std::string local_text(int64_t time_us);   // 2026-11-15 19:43:05.339754 in the local zone
std::optional<int64_t> parse_utc(
    std::string_view text);                 // reads utc_text, also with a blank instead of T, "+00:00" or nothing
std::string duration_text(double seconds);  // 0.42 s, 12.3 s, 3 min 05 s, 2 h 10 min

class Stopwatch {
 public:
  Stopwatch() : start_(std::chrono::steady_clock::now()) {}
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  void restart() { start_ = std::chrono::steady_clock::now(); }

 private:
  std::chrono::steady_clock::time_point start_;
};

}  // namespace assay
