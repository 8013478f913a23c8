// The verdicts of a run that belong into one table, such as strategies by precision.
#pragma once

#include <string>
#include <vector>

#include "report/run_view.h"

namespace assay {

// Borrows from the run.
struct Matrix {
  std::vector<std::string> rows;     // in the order of the verdicts
  std::vector<std::string> columns;  // likewise
  std::vector<const Verdict*> verdicts;

  bool empty() const { return rows.empty(); }
  const Verdict* at(const std::string& row, const std::string& column) const;  // nullptr: none
};
Matrix matrix_of(const RunView& run);

// What stands in a place of the table: the outcome, "n/a" where it was skipped, "-" where there is no verdict; then, in
// the order of matrix_figures(), its figures.
std::string matrix_outcome(const Verdict* verdict);
std::vector<std::string> matrix_figures(const Verdict* verdict);
inline constexpr const char* kMatrixFigures[] = {"loss", "weights", "time"};

// What did not pass, one sentence a reason: "sp: resnet has no sequences". The same reason in several columns is one.
struct MatrixRemark {
  std::string place;  // "dp2 float64", or "sp" when all columns have it
  Outcome outcome = Outcome::Fail;
  std::string reason;
};
std::vector<MatrixRemark> matrix_remarks(const Matrix& matrix);

}  // namespace assay
