// What checks are judged from. This is the view that they have of a run; run/evidence.h gives it from a run folder. So
// checks know steps by the folders they work in, and neither journals nor plans.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "record/record.h"
#include "verify/verdict.h"

namespace assay {

// All names are relative to the run folder, as they stand in plans.
class Evidence {
 public:
  // How a step ended.
  struct StepEnd {
    Outcome outcome = Outcome::Invalid;
    std::string reason = {};
    std::optional<double> seconds = {};
  };

  virtual ~Evidence() = default;

  virtual std::filesystem::path path(const std::string& name) const = 0;
  // The records of one file, each file read once, without those that a resumed attempt voided; empty when there is no
  // such file. Throws DataError when it is damaged.
  virtual const std::vector<Record>& records(const std::string& file) const = 0;
  // The records files of all ranks of a step, sorted.
  virtual std::vector<std::string> records_files(const std::string& step_folder) const = 0;
  // nullopt: it has not ended.
  virtual std::optional<StepEnd> end_of(const std::string& step_folder) const = 0;
};

// The last result in a file of records. Throws InvalidError when there is none.
const Json& last_result(const Evidence& evidence, const std::string& file);
// A figure of it. Throws InvalidError when it was not measured.
double measured_figure(const Evidence& evidence, const std::string& file, const std::string& key);

}  // namespace assay
