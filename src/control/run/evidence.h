// The evidence of a run, as verdicts, results and reports read it: the records of its steps, each file read once and
// without what a resumed attempt voided, and how steps ended, from the journal. Reading again needs another one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "run/run_folder.h"
#include "verify/evidence.h"

namespace assay {

// The one place for the rule: an attempt that continued from a checkpoint (RESUMED) voids the metrics and events that
// earlier attempts wrote beyond it, and an attempt that begins (INIT_START) what earlier ones reported as their result.
// Records without a step stay, in their order.
std::vector<Record> without_voided(std::vector<Record> records);

class RunEvidence : public Evidence {
 public:
  // All of them are borrowed.
  RunEvidence(const std::filesystem::path& run_folder, const Plan& plan, const RunState& state);
  explicit RunEvidence(const RunRecord& run) : RunEvidence(run.path, run.plan, run.state) {}
  explicit RunEvidence(const RunFolder& run) : RunEvidence(run.path(), run.plan(), run.state()) {}

  std::filesystem::path path(const std::string& name) const override { return run_folder_ / name; }
  const std::vector<Record>& records(const std::string& file) const override;
  std::vector<std::string> records_files(const std::string& step_folder) const override;
  std::optional<StepEnd> end_of(const std::string& step_folder) const override;

  // The records of a step of the plan, one list per rank that writes here. Throws DataError when a file is damaged.
  std::vector<std::vector<Record>> ranks(const Step& step) const;

 private:
  std::filesystem::path run_folder_;
  const Plan& plan_;
  const RunState& state_;
  mutable std::map<std::string, std::vector<Record>> read_;  // by file
};

}  // namespace assay
