#include "report/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/figures.h"

namespace assay {

namespace {

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// Differences are powers of ten to people; what could not be compared is "-".
std::string difference_text(const Verdict& verdict, const char* key) {
  const auto value = member_number(verdict.figures, key);
  if (!value) return kNotMeasured;
  if (!std::isfinite(*value)) return "none finite";
  return *value == 0 ? "0" : fmt::format("{:.1e}", *value);
}

}  // namespace

const Verdict* Matrix::at(const std::string& row, const std::string& column) const {
  for (const Verdict* verdict : verdicts) {
    if (verdict->row == row && verdict->column == column) return verdict;
  }
  return nullptr;
}

Matrix matrix_of(const RunView& run) {
  Matrix matrix;
  for (const Verdict& verdict : run.verdicts) {
    if (verdict.row.empty()) continue;
    add_once(matrix.rows, verdict.row);
    add_once(matrix.columns, verdict.column);
    matrix.verdicts.push_back(&verdict);
  }
  return matrix;
}

std::string matrix_outcome(const Verdict* verdict) {
  if (!verdict) return kNotMeasured;
  return verdict->outcome == Outcome::Skipped ? "n/a" : std::string(outcome_name(verdict->outcome));
}

std::vector<std::string> matrix_figures(const Verdict* verdict) {
  if (!verdict || verdict->outcome == Outcome::Skipped) return {"", "", ""};
  return {difference_text(*verdict, "loss_difference"), difference_text(*verdict, "weight_difference"),
          seconds_text(member_number(verdict->figures, "seconds"))};
}

std::vector<MatrixRemark> matrix_remarks(const Matrix& matrix) {
  std::vector<MatrixRemark> remarks;
  for (const std::string& row : matrix.rows) {
    std::vector<MatrixRemark> of_row;
    for (const std::string& column : matrix.columns) {
      const Verdict* verdict = matrix.at(row, column);
      if (!verdict || verdict->outcome == Outcome::Pass) continue;
      of_row.push_back({.place = row + " " + column, .outcome = verdict->outcome, .reason = verdict->reason});
    }
    const bool one_reason = of_row.size() == matrix.columns.size() &&
                            std::all_of(of_row.begin(), of_row.end(), [&](const MatrixRemark& remark) {
                              return remark.reason == of_row[0].reason && remark.outcome == of_row[0].outcome;
                            });
    if (one_reason && !of_row.empty()) {
      of_row.resize(1);
      of_row[0].place = row;
    }
    remarks.insert(remarks.end(), of_row.begin(), of_row.end());
  }
  return remarks;
}

}  // namespace assay
