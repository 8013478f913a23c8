#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace assay {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (true) {
    size_t end = text.find(separator, start);
    if (end == std::string_view::npos) break;
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.emplace_back(text.substr(start));
  return parts;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

namespace {

// Edits counted: insert, delete, replace, swap of neighbours.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  std::iota(cost[0].begin(), cost[0].end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string wanted = lower(word.substr(0, 200));
  const std::string* best = nullptr;
  size_t best_cost = std::max<size_t>(2, wanted.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(candidate.size(), wanted.size());
    const size_t shorter = std::min(candidate.size(), wanted.size());
    if (longer - shorter >= best_cost) continue;
    size_t cost = edit_distance(wanted, lower(candidate));
    if (cost < best_cost) {
      best_cost = cost;
      best = &candidate;
    }
  }
  if (!best) return std::nullopt;
  return *best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  auto found = nearest(word, candidates);
  return found ? " (did you mean '" + *found + "'?)" : "";
}

std::optional<bool> parse_bool(std::string_view text) {
  const std::string word = lower(text);
  for (const char* yes : {"yes", "true", "t", "y", "1"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"no", "false", "f", "n", "0"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

namespace {

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  Number value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<long long> parse_int(std::string_view text) { return parse_number<long long>(text); }
std::optional<double> parse_double(std::string_view text) { return parse_number<double>(text); }

void append_python_float(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += std::isnan(value) ? "nan" : (value > 0 ? "inf" : "-inf");
    return;
  }
  std::array<char, 40> buffer;
  // Python switches to an exponent below 1e-4 and from 1e16 on.
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  (void)error;  // 40 bytes hold every double
  out.append(buffer.data(), end);
  if (plain && std::find(buffer.data(), end, '.') == end) out += ".0";
}

std::string python_float(double value) {
  std::string out;
  append_python_float(out, value);
  return out;
}

std::string shell_quote(std::string_view argument) {
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,/:@%";
  if (!argument.empty() && argument.find_first_not_of(kSafe) == std::string_view::npos) return std::string(argument);
  std::string out = "'";
  for (char c : argument) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string shell_line(const std::vector<std::string>& argv) {
  std::vector<std::string> quoted;
  for (const std::string& argument : argv) quoted.push_back(shell_quote(argument));
  return join(quoted, " ");
}

namespace {

// The length of the UTF-8 sequence at the start of the text, 0 if there is none; its code point in *point.
size_t utf8_sequence(std::string_view text, uint32_t* point) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    *point = lead;
    return 1;
  }
  size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  uint32_t value = lead & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = (value << 6) | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0;
  *point = value;
  return length;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    uint32_t point = 0;
    size_t length = utf8_sequence(text, &point);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      length = 1;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    uint32_t point = 0;
    size_t length = utf8_sequence(text, &point);
    const bool wide = (point >= 0x1100 && point <= 0x115F) || (point >= 0x2E80 && point <= 0xA4CF) ||
                      (point >= 0xAC00 && point <= 0xD7A3) || (point >= 0xF900 && point <= 0xFAFF) ||
                      (point >= 0xFE30 && point <= 0xFE4F) || (point >= 0xFF00 && point <= 0xFF60) ||
                      (point >= 0x1F300 && point <= 0x1FAFF) || (point >= 0x20000 && point <= 0x3FFFD);
    width += wide ? 2 : 1;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return width;
}

}  // namespace assay
