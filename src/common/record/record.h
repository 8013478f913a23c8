// The one record schema. Every log dialect is read into it and written from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace assay {

struct Record {
  enum class Type {
    Event,        // name: "TRAIN_START", see keys.h; data: what belongs to it
    Parameters,   // data: name -> value, fixed before the run
    Metadata,     // name: a metric; data: {unit, format, GOAL, STAGE, name}
    Metrics,      // step and data: metric -> value
    Environment,  // data: group -> {name: value}
    Result,       // name: a case; data: the architecture's "result of a case"
    Message,      // data: {"text": ...}
  };
  enum class Verbosity { Off = -1, Default = 0, Verbose = 1 };

  Type type = Type::Message;
  int64_t time_us = 0;     // UTC
  int64_t elapsed_us = 0;  // since its logger started
  int rank = 0;
  std::string name;
  // Metrics: {epoch, iteration}, {epoch, iteration, validation iteration}, {epoch} for an epoch's summary, {} for the
  // run's.
  std::optional<std::vector<int64_t>> step;
  Json data = Json::object();  // non-finite numbers as json_number() gives them
  Verbosity verbosity = Verbosity::Default;
  std::string file;  // where in the code it was logged; empty when unknown
  int line = 0;
  // What a line of a foreign dialect said that has no place above: dialect -> what its writer needs to write the line
  // as it was. Null when there is nothing.
  Json extra;

  bool operator==(const Record&) const = default;
};

std::string_view type_name(Record::Type type);  // "event", "parameters", ...
std::optional<Record::Type> type_of(std::string_view name);

}  // namespace assay
