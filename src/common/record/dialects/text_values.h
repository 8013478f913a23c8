// Numbers with units in lines meant for people. Shared by the readers of text dialects.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "record/record.h"

namespace assay {

struct TextValue {
  Json value;
  std::string text;  // as it stood, without the unit
  std::string unit;  // "" when there is none
};
// "16221.6 imgs/s", "0.2s", "1886 MB", "nan", "0:10:28", "[1, 2]": a number and its unit where it starts with a number,
// otherwise a value as Python's str() prints it.
TextValue parse_text_value(std::string_view text);

// Remembers what is known of each metric and tells the news as Metadata records, before the record they belong to.
class MetricMemory {
 public:
  struct Facts {
    std::string unit;
    std::string format;
    bool operator==(const Facts&) const = default;
  };
  const Facts& of(const std::string& metric) { return facts_[metric]; }
  // `stage` is "TRAIN", "VALID" or "".
  void learn(const std::string& metric, const Facts& facts, const std::string& stage, int64_t time_us,
             std::vector<Record>& records);

 private:
  std::map<std::string, Facts> facts_;
};

}  // namespace assay
