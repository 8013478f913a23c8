#include "verify/evidence.h"

#include <fmt/format.h>

#include "base/error.h"

namespace assay {

const Json& last_result(const Evidence& evidence, const std::string& file) {
  const std::vector<Record>& records = evidence.records(file);
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    if (record->type == Record::Type::Result) return record->data;
  }
  throw InvalidError(fmt::format("{} holds no result", file));
}

double measured_figure(const Evidence& evidence, const std::string& file, const std::string& key) {
  const Json& result = last_result(evidence, file);
  if (!result.contains(key) || !is_number(result.at(key))) {
    throw InvalidError(fmt::format("{} was not measured in {}", key, file));
  }
  return number_of(result.at(key));
}

}  // namespace assay
