#include "base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/files.h"

namespace assay {

Json json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

bool is_number(const Json& value) {
  if (value.is_number()) return true;
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return text == "NaN" || text == "Infinity" || text == "-Infinity";
}

double number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  }
  throw DataError(fmt::format("expected a number, found {}", to_line(value)));
}

namespace {

constexpr int kMaxDepth = 200;  // far beyond any file of ours; a hostile one must not exhaust the stack

std::string position(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t last = before.rfind('\n');
  const size_t column = last == std::string_view::npos ? before.size() : before.size() - last - 1;
  return fmt::format("line {}, column {}", line, column);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  try {
    const auto limit_depth = [&](int depth, Json::parse_event_t, Json&) {
      if (depth > kMaxDepth) throw DataError(fmt::format("{}: JSON nested deeper than {} levels", where, kMaxDepth));
      return true;
    };
    return Json::parse(text.begin(), text.end(), limit_depth);
  } catch (const Json::parse_error& error) {
    throw DataError(fmt::format("{}: {}: not valid JSON", where, position(text, error.byte)));
  } catch (const Json::out_of_range&) {
    throw DataError(fmt::format("{}: a number too large for a double", where));
  }
}

Json read_json_file(const std::filesystem::path& path) { return parse_json(read_file(path), path.string()); }

std::string to_line(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }
std::string to_pretty(const Json& value) { return value.dump(2, ' ', false, Json::error_handler_t::replace); }

}  // namespace assay
