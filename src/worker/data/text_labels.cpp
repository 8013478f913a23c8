#include "data/text_labels.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/json.h"

namespace assay {

namespace {

constexpr size_t kMaxOutlinePoints = 64;
constexpr size_t kMaxTexts = 10'000;
constexpr double kMaxCoordinate = 1e6;

double label_coordinate(const Json& value) {
  if (!value.is_number()) throw DataError("a coordinate is not a number");
  const double number = value.get<double>();
  if (!(std::abs(number) <= kMaxCoordinate)) throw DataError("a coordinate is too large");
  return number;
}

TextOutline outline_of(const Json& json) {
  if (!json.is_object() || !json.contains("points") || !json["points"].is_array()) {
    throw DataError("a text has no list of points");
  }
  const Json& points = json["points"];
  if (points.size() < 3 || points.size() > kMaxOutlinePoints) {
    throw DataError(fmt::format("an outline of {} points; it needs 3 to {}", points.size(), kMaxOutlinePoints));
  }
  TextOutline outline;
  for (const Json& point : points) {
    if (!point.is_array() || point.size() != 2) throw DataError("a point is not [x, y]");
    outline.points.push_back({label_coordinate(point[0]), label_coordinate(point[1])});
  }
  if (!json.contains("transcription") || !json["transcription"].is_string()) {
    throw DataError("a text has no transcription");
  }
  const std::string text = json["transcription"].get<std::string>();
  outline.ignored = text == "###" || text == "*";
  return outline;
}

TextLabels labels_of_line(std::string_view line) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos || tab == 0) throw DataError("needs a path, a tab and a list of texts");
  TextLabels labels;
  labels.path = line.substr(0, tab);
  const Json texts = parse_json(line.substr(tab + 1), "its list of texts");
  if (!texts.is_array() || texts.size() > kMaxTexts) throw DataError("what follows the tab is not a list of texts");
  for (const Json& text : texts) labels.texts.push_back(outline_of(text));
  return labels;
}

}  // namespace

std::vector<TextLabels> parse_text_labels(std::string_view text, const std::string& where) {
  std::vector<TextLabels> all;
  for (int64_t line_number = 1; !text.empty(); ++line_number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    try {
      all.push_back(labels_of_line(line));
    } catch (const Error& error) {
      throw DataError(fmt::format("{}:{}: {}", where, line_number, error.what()));
    }
  }
  return all;
}

}  // namespace assay
