#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/time.h"
#include "record/keys.h"
#include "report/figures.h"
#include "report/formats/all.h"
#include "report/matrix.h"
#include "report/plain_text.h"
#include "report/table.h"

namespace assay {

namespace {

constexpr size_t kIndent = 2;
constexpr size_t kMaxLogLines = 20;

struct Style {
  bool colours = false;
  size_t width = 0;
  Table::Layout table(bool titles = true) const {
    return {.colours = colours, .width = width, .indent = kIndent, .titles = titles};
  }
  std::string paint(std::string_view text, Colour colour) const { return painted(text, colour, colours); }
};

Cell outcome_cell(Outcome outcome) { return {std::string(outcome_name(outcome)), outcome_colour(outcome)}; }

std::string heading(std::string_view text, const Style& style) { return "\n" + style.paint(text, Colour::Bold) + "\n"; }

std::string head(const RunView& run, const Style& style) {
  std::string out = style.paint(outcome_name(run.outcome), outcome_colour(run.outcome));
  out += "  " + style.paint(plain_text(run.title), Colour::Bold) + "\n";
  if (!run.reason.empty()) {
    const size_t room = style.width > 0 ? style.width - std::min(style.width, kIndent) : kMaxPlainBytes;
    for (const std::string& line : wrap_text(plain_text(run.reason), room)) out += "  " + line + "\n";
  }
  out += style.paint(fmt::format("  run {}, started {}, took {}", plain_text(run.id), when_text(run.started_us),
                                 seconds_text(run_seconds(run))),
                     Colour::Dim);
  return out + "\n";
}

// Steps that a table of verdicts says nothing of, and that are worth a line.
bool is_beside(const Matrix& matrix, const StepView& step) {
  if (step.outcome == Outcome::Pass) return !step.restarts.empty();
  const bool in_table = std::any_of(matrix.verdicts.begin(), matrix.verdicts.end(), [&](const Verdict* verdict) {
    return step.name == verdict->row + "-" + verdict->column;
  });
  return !in_table && step.kind != "verify";
}

// With a table of verdicts only those beside it, and nothing where there are none.
std::string steps(const RunView& run, const Style& style, const Matrix& matrix) {
  if (run.steps.empty()) return heading("Steps", style) + "  none\n";
  Table table({{.title = "#", .align = Table::Align::Right},
               {.title = "step"},
               {.title = "kind"},
               {.title = "outcome"},
               {.title = "time", .align = Table::Align::Right},
               {.title = "reason", .wraps = true}});
  for (const StepView& step : run.steps) {
    if (!matrix.empty() && !is_beside(matrix, step)) continue;
    std::string reason = step.reason;
    for (const std::string& note : step_notes(step)) reason += (reason.empty() ? "" : "; ") + note;
    table.add({std::to_string(step.number), step.name, Cell(step.kind, Colour::Dim), outcome_cell(step.outcome),
               seconds_text(step.seconds), reason});
  }
  if (!matrix.empty() && table.num_rows() == 0) return "";
  return heading("Steps", style) + table.text(style.table());
}

std::string matrix(const Matrix& matrix, const Style& style) {
  std::vector<Table::Column> columns = {{.title = "strategy"}};
  for (const std::string& column : matrix.columns) {
    columns.push_back({.title = column});
    for (const char* figure : kMatrixFigures) columns.push_back({.title = figure, .align = Table::Align::Right});
  }
  Table table(std::move(columns));
  for (const std::string& row : matrix.rows) {
    std::vector<Cell> cells = {row};
    for (const std::string& column : matrix.columns) {
      const Verdict* verdict = matrix.at(row, column);
      cells.emplace_back(matrix_outcome(verdict), verdict ? outcome_colour(verdict->outcome) : Colour::Dim);
      for (const std::string& figure : matrix_figures(verdict)) cells.emplace_back(figure);
    }
    table.add(std::move(cells));
  }
  std::string out = heading("Against one process", style) + table.text(style.table());
  for (const MatrixRemark& remark : matrix_remarks(matrix)) {
    const std::string text = fmt::format("{}: {}", plain_text(remark.place), plain_text(remark.reason));
    out += "\n";
    for (const std::string& line : wrap_text(text, style.width > kIndent ? style.width - kIndent : kMaxPlainBytes)) {
      out += "  " + style.paint(line, outcome_colour(remark.outcome)) + "\n";
    }
  }
  return out;
}

std::string verdicts(const RunView& run, const Style& style) {
  if (run.verdicts.empty()) return heading("Verdicts", style) + "  none\n";
  Table table({{.title = "verdict", .wraps = true}, {.title = "outcome"}, {.title = "reason", .wraps = true}});
  for (const Verdict& verdict : run.verdicts) {
    table.add({verdict.name, outcome_cell(verdict.outcome), verdict.reason});
  }
  return heading("Verdicts", style) + table.text(style.table());
}

// One case reads best as a list, several as a table.
std::string one_result(const Result& result, const Style& style) {
  Table table({{.title = "figure"}, {.title = "value"}, {.title = "note", .wraps = true}});
  for (const Figure& figure : headline(result)) {
    table.add({Cell(figure.label, Colour::Dim), Cell(figure.value, Colour::Bold), Cell(figure.note, Colour::Dim)});
  }
  return heading("Result of " + plain_text(case_name(result, 0)), style) + table.text(style.table(false));
}

std::string many_results(const RunView& run, const Style& style) {
  Table table({{.title = "case", .wraps = true},
               {.title = "accuracy", .align = Table::Align::Right},
               {.title = "target", .align = Table::Align::Right},
               {.title = "throughput", .align = Table::Align::Right},
               {.title = "e2e time", .align = Table::Align::Right},
               {.title = "peak memory", .align = Table::Align::Right}});
  for (size_t i = 0; i < run.case_results.size(); ++i) {
    const Result& result = run.case_results[i];
    const auto target = target_value(result);
    table.add({case_name(result, i), result_text(result, keys::kFinalAccuracy),
               target ? number_text(*target) : kNotMeasured, headline(result)[1].value,
               result_text(result, keys::kE2eTime), result_text(result, keys::kPeakMemory)});
  }
  return heading("Results", style) + table.text(style.table());
}

std::string failure_logs(const RunView& run, const Style& style) {
  std::string out;
  for (const StepView& step : run.steps) {
    const bool broke = step.outcome == Outcome::Fail || step.outcome == Outcome::Error;
    if (!broke || step.last_lines.empty()) continue;
    out += heading(fmt::format("Last lines of {} ({})", plain_text(step.folder.empty() ? step.name : step.folder),
                               exit_text(step)),
                   style);
    const size_t first = step.last_lines.size() - std::min(kMaxLogLines, step.last_lines.size());
    for (size_t i = first; i < step.last_lines.size(); ++i) {
      std::string line = plain_log_line(step.last_lines[i]);
      if (style.width > 2 * kIndent) line = clip_text(line, style.width - 2 * kIndent);
      out += style.paint("  | ", Colour::Dim) + line + "\n";
    }
  }
  return out;
}

}  // namespace

Colour outcome_colour(Outcome outcome) {
  switch (outcome) {
    case Outcome::Pass: return Colour::Green;
    case Outcome::Fail:
    case Outcome::Error: return Colour::Red;
    case Outcome::Invalid: return Colour::Yellow;
    case Outcome::Skipped: return Colour::Dim;
  }
  return Colour::Plain;
}

std::string render_terminal(const RunView& run, bool colours, size_t width) {
  const Style style{.colours = colours, .width = width};
  const Matrix table = matrix_of(run);
  // Where a table has all the verdicts, lists of steps and results would only repeat it.
  if (!table.empty())
    return head(run, style) + steps(run, style, table) + matrix(table, style) + failure_logs(run, style);
  std::string out = head(run, style) + steps(run, style, table) + verdicts(run, style);
  if (run.case_results.size() == 1) out += one_result(run.case_results[0], style);
  if (run.case_results.size() > 1) out += many_results(run, style);
  return out + failure_logs(run, style);
}

namespace formats {

ReportFormat terminal_format() {
  return {.name = "terminal", .file = nullptr, .render = [](const RunView& run, const PrintTarget& target) {
            return render_terminal(run, target.colours, target.width);
          }};
}

}  // namespace formats

}  // namespace assay
