#include "run/evidence.h"

#include <algorithm>

#include "layout/run_layout.h"
#include "record/keys.h"
#include "record/stream.h"

namespace assay {

namespace {

bool is_event(const Record& record, const char* name) {
  return record.type == Record::Type::Event && record.name == name;
}

// The training step that a metric or an event is about; nullopt: none.
std::optional<double> training_step(const Record& record) {
  if (record.type != Record::Type::Metrics && record.type != Record::Type::Event) return std::nullopt;
  if (!record.data.is_object()) return std::nullopt;
  const auto number_at = [&](const char* key) -> std::optional<double> {
    const auto found = record.data.find(key);
    return found == record.data.end() || !is_number(*found) ? std::nullopt : std::optional(number_of(*found));
  };
  if (const auto step = number_at(keys::kGlobalStep)) return step;
  return is_event(record, keys::kReplicaDiffers) ? number_at(keys::kStep) : std::nullopt;
}

// What a program says of its run as a whole.
bool is_report(const Record& record) {
  const bool is_summary = record.type == Record::Type::Metrics && record.step && record.step->empty();
  return record.type == Record::Type::Result || is_event(record, keys::kFinished) || is_summary;
}

}  // namespace

std::vector<Record> without_voided(std::vector<Record> records) {
  std::vector<Record> valid;
  valid.reserve(records.size());
  for (Record& record : records) {
    if (is_event(record, keys::kInitStart)) std::erase_if(valid, is_report);
    if (const auto checkpoint = is_event(record, keys::kResumed) ? training_step(record) : std::nullopt) {
      std::erase_if(valid, [&](const Record& earlier) {
        const auto step = training_step(earlier);
        return step && *step > *checkpoint && !is_report(earlier);
      });
    }
    valid.push_back(std::move(record));
  }
  return valid;
}

RunEvidence::RunEvidence(const std::filesystem::path& run_folder, const Plan& plan, const RunState& state)
    : run_folder_(run_folder), plan_(plan), state_(state) {}

const std::vector<Record>& RunEvidence::records(const std::string& file) const {
  const auto found = read_.find(file);
  if (found != read_.end()) return found->second;
  return read_.emplace(file, without_voided(read_records(run_folder_ / file))).first->second;
}

std::vector<std::string> RunEvidence::records_files(const std::string& step_folder) const {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(run_folder_ / step_folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (layout::is_records_file(name)) files.push_back(step_folder + "/" + name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<Evidence::StepEnd> RunEvidence::end_of(const std::string& step_folder) const {
  for (const Step& step : plan_.steps) {
    if (plan_.folder(step.name) != step_folder) continue;
    const auto found = state_.steps.find(step.name);
    if (found == state_.steps.end() || found->second.running || !found->second.outcome) return std::nullopt;
    const StepState& state = found->second;
    return StepEnd{.outcome = *state.outcome, .reason = state.reason, .seconds = state.seconds};
  }
  return std::nullopt;
}

std::vector<std::vector<Record>> RunEvidence::ranks(const Step& step) const {
  const std::string folder = plan_.folder(step.name);
  const int first = step.ranks.first_rank();
  std::vector<std::vector<Record>> ranks;
  for (int rank = first; rank < first + step.ranks.num_ranks_here(); ++rank) {
    ranks.push_back(records(folder + "/" + layout::records_file(rank)));
  }
  return ranks;
}

}  // namespace assay
