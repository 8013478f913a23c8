// Records as lines for a person at a terminal: time, rank, type, step, and what it says with units. Knows nothing of
// colours or files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "record/record.h"

namespace assay {

class RecordLines {
 public:
  // Only these metrics, when there are any; records without one of them have no line then.
  explicit RecordLines(std::vector<std::string> metrics = {}) : metrics_(std::move(metrics)) {}
  static std::string header();
  // One line without its newline; "" when there is nothing to show. Remembers the units that Metadata records tell.
  std::string line(const Record& record);
  // Whether the record holds one of the metrics, or none were asked for.
  bool wanted(const Record& record) const;

 private:
  std::string content(const Record& record) const;
  std::string value_text(const std::string& key, const Json& value) const;

  std::vector<std::string> metrics_;
  std::map<std::string, std::string> units_;
};

// Without escape sequences and control characters: a log must not be able to drive the terminal.
std::string printable(std::string_view text);

}  // namespace assay
