#include "report/markdown.h"

#include <fmt/format.h>

#include "layout/run_layout.h"
#include "record/keys.h"
#include "report/escape.h"
#include "report/figures.h"
#include "report/formats/all.h"
#include "report/markdown_table.h"
#include "report/matrix.h"
#include "report/plain_text.h"

namespace assay {

namespace {

std::string plain_number(const Result& result, std::string_view key) {
  const auto value = result_number(result, key);
  return value ? number_text(*value) : kNotMeasured;
}

std::string memory(const Result& result) {
  const std::string used = result_text(result, keys::kPeakMemory);
  const std::string total = result_text(result, keys::kTotalMemory);
  return total == kNotMeasured ? used : used + " / " + total;
}

std::string matrix_table(const Matrix& matrix) {
  std::vector<std::string> heads = {"strategy"};
  for (const std::string& column : matrix.columns) {
    heads.push_back(column);
    for (const char* figure : kMatrixFigures) heads.push_back(fmt::format(">{}", figure));
  }
  std::string out = "\n## Against one process\n\n" + markdown_titles(heads);
  for (const std::string& name : matrix.rows) {
    std::vector<std::string> cells = {name};
    for (const std::string& column : matrix.columns) {
      const Verdict* verdict = matrix.at(name, column);
      cells.push_back(matrix_outcome(verdict));
      for (const std::string& figure : matrix_figures(verdict)) cells.push_back(figure);
    }
    out += markdown_row(cells);
  }
  for (const MatrixRemark& remark : matrix_remarks(matrix)) {
    out += fmt::format("\n- {}: {}\n", escape_markdown(remark.place), escape_markdown(remark.reason));
  }
  return out;
}

std::string verdict_table(const RunView& run) {
  if (run.verdicts.empty()) return "";
  if (const Matrix matrix = matrix_of(run); !matrix.empty()) return matrix_table(matrix);
  std::string out = "\n## Verdicts\n\n" + markdown_titles({"verdict", "outcome", "reason"});
  for (const Verdict& verdict : run.verdicts) {
    out += markdown_row({verdict.name, std::string(outcome_name(verdict.outcome)), verdict.reason});
  }
  return out;
}

std::string step_table(const RunView& run) {
  if (run.steps.empty()) return "";
  std::string out = "\n## Steps\n\n" + markdown_titles({">#", "step", "outcome", ">time", ">peak memory", "reason"});
  for (const StepView& step : run.steps) {
    std::string reason = step.reason;
    for (const std::string& note : step_notes(step)) reason += (reason.empty() ? "" : "; ") + note;
    const std::string peak = step.max_rss_bytes ? bytes_text(static_cast<double>(*step.max_rss_bytes)) : kNotMeasured;
    out += markdown_row({std::to_string(step.number), step.name, std::string(outcome_name(step.outcome)),
                         seconds_text(step.seconds), peak, reason});
  }
  return out;
}

std::string logs(const RunView& run) {
  std::string out;
  for (const StepView& step : run.steps) {
    const bool broke = step.outcome == Outcome::Fail || step.outcome == Outcome::Error;
    if (!broke || step.last_lines.empty()) continue;
    std::vector<std::string> lines;
    for (const std::string& line : step.last_lines) lines.push_back(plain_log_line(line));
    const std::string fence = code_fence(lines);
    out += fmt::format("\n## Last lines of {}\n\n{}text\n", escape_markdown(step.name), fence);
    for (const std::string& line : lines) out += line + "\n";
    out += fence + "\n";
  }
  return out;
}

std::string environment(const RunView& run) {
  std::string rows;
  for (const auto& [group, entries] : run.environment.items()) {
    if (!entries.is_object()) {
      rows += markdown_row({group, "", value_text(entries)});
      continue;
    }
    for (const auto& [name, value] : entries.items()) rows += markdown_row({group, name, value_text(value)});
  }
  if (rows.empty()) return "";
  return "\n<details><summary>Environment</summary>\n\n" + markdown_titles({"group", "name", "value"}) + rows +
         "\n</details>\n";
}

}  // namespace

std::string markdown_case_table(const std::vector<Result>& case_results) {
  std::string out = markdown_titles({"config", keys::kPrecision, keys::kFixHp, ">e2e_time", ">p_whole", ">p_train",
                                     ">p_core", ">acc", ">mem (used / total)", ">MFU"});
  for (size_t i = 0; i < case_results.size(); ++i) {
    const Result& result = case_results[i];
    out += markdown_row({case_name(result, i), result_text(result, keys::kPrecision), result_text(result, keys::kFixHp),
                         plain_number(result, keys::kE2eTime), result_text(result, keys::kThroughputWhole),
                         result_text(result, keys::kThroughputTrain), result_text(result, keys::kThroughputCore),
                         result_text(result, keys::kFinalAccuracy), memory(result), result_text(result, keys::kMfu)});
  }
  return out;
}

std::string render_markdown(const RunView& run) {
  std::string out =
      fmt::format("# {}: {}\n\n", outcome_name(run.outcome), escape_markdown(run.title.empty() ? run.id : run.title));
  if (!run.reason.empty()) out += escape_markdown(run.reason) + "\n\n";
  out += fmt::format("Run {}, started {}, took {}.\n", escape_markdown(run.id), when_text(run.started_us),
                     seconds_text(run_seconds(run)));
  if (!run.case_results.empty() && matrix_of(run).empty()) {
    out += "\n## Results\n\n" + markdown_case_table(run.case_results);
    out +=
        "\ne2e_time in seconds; throughput with evaluation (p_whole), without it (p_train), and of compute alone "
        "(p_core); \"-\" was not measured.\n";
  }
  return out + verdict_table(run) + step_table(run) + logs(run) + environment(run);
}

namespace formats {

ReportFormat markdown_format() {
  return {.name = "markdown", .file = layout::kMarkdown, .render = [](const RunView& run, const PrintTarget&) {
            return render_markdown(run);
          }};
}

}  // namespace formats

}  // namespace assay
