#include "record/dialects/text_values.h"

#include <algorithm>

#include "base/text.h"
#include "record/python_text.h"

namespace assay {

namespace {

// How much of the text is a number: "0.2s" 3, "1e-05 x" 5, "nan" 3, "0:10:28" 0.
size_t number_length(std::string_view text) {
  size_t length = std::min(text.find_first_of(" \t"), text.size());
  // A unit may follow at once: shorten until a number is left.
  while (length > 0 && !is_number(value_of_python_str(text.substr(0, length)))) --length;
  if (length == 0) return 0;
  // A letter or a blank may follow a number; anything else makes it part of something larger (a time, a version).
  const bool ends = length == text.size() || text[length] == ' ' || text[length] == '\t' || text[length] == '%' ||
                    std::isalpha(static_cast<unsigned char>(text[length]));
  return ends ? length : 0;
}

}  // namespace

TextValue parse_text_value(std::string_view input) {
  const std::string_view text = trim(input);
  const size_t length = number_length(text.substr(0, 64));
  const std::string_view rest = trim(text.substr(length));
  const bool word = length > 0 && std::isalpha(static_cast<unsigned char>(text[0])) && length < text.size() &&
                    text[length] != ' ';                         // "info" is not infinity with the unit "o"
  const bool phrase = rest.find(',') != std::string_view::npos;  // "2 days, 20:01:28"
  if (length == 0 || word || phrase) {
    return {.value = value_of_python_str(text), .text = std::string(text), .unit = ""};
  }
  return {.value = value_of_python_str(text.substr(0, length)),
          .text = std::string(text.substr(0, length)),
          .unit = std::string(rest)};
}

void MetricMemory::learn(const std::string& metric, const Facts& facts, const std::string& stage, int64_t time_us,
                         std::vector<Record>& records) {
  Facts& known = facts_[metric];
  if (known == facts) return;
  Record record;
  record.type = Record::Type::Metadata;
  record.time_us = time_us;
  record.name = metric;
  if (known.unit != facts.unit) record.data["unit"] = facts.unit;
  if (known.format != facts.format) record.data["format"] = facts.format;
  if (!stage.empty()) record.data["STAGE"] = stage;
  known = facts;
  records.push_back(std::move(record));
}

}  // namespace assay
