#include "results/program_report.h"

#include "record/keys.h"

namespace assay {

namespace {

void take_object(const Json& data, const char* key, Json& out) {
  const auto found = data.find(key);
  if (found != data.end() && found->is_object()) out = *found;
}

void take_report(const Record& record, ProgramReport& out) {
  const bool is_result = record.type == Record::Type::Result;
  const bool is_finished = record.type == Record::Type::Event && record.name == keys::kFinished;
  const bool is_summary = record.type == Record::Type::Metrics && record.step && record.step->empty();
  if ((!is_result && !is_finished && !is_summary) || !record.data.is_object()) return;
  Figures figures = read_figures(record.data, is_result ? Voice::Ours : Voice::Foreign);
  if (!is_result && figures.values.empty() && !figures.converged && figures.warnings.empty()) return;
  out.found = true;
  merge_figures(out.figures, std::move(figures));
  take_object(record.data, keys::kTarget, out.target);
  take_object(record.data, keys::kHashes, out.hashes);
  if (!is_result) return;
  out.data = record.data;
  out.case_name = record.name;
}

}  // namespace

ProgramReport program_report(const std::vector<std::vector<Record>>& ranks) {
  for (const std::vector<Record>& records : ranks) {
    ProgramReport report;
    for (const Record& record : records) take_report(record, report);
    if (report.found) return report;
  }
  return {};
}

}  // namespace assay
