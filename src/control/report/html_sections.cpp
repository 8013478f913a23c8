#include "report/html_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "record/keys.h"
#include "report/escape.h"
#include "report/figures.h"
#include "report/matrix.h"
#include "report/plain_text.h"

namespace assay {

namespace {

std::string icon(Outcome outcome) {
  return fmt::format(R"(<svg class="icon" aria-hidden="true" focusable="false"><use href="#icon-{}"/></svg>)",
                     outcome_class(outcome));
}

std::string badge(Outcome outcome) {
  return fmt::format(R"(<span class="badge {}">{}{}</span>)", outcome_class(outcome), icon(outcome),
                     outcome_name(outcome));
}

std::string section(std::string_view id, std::string_view title, std::string_view aside, std::string_view body) {
  return fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-title\"><div class=\"section-head\"><h2 id=\"{0}-title\">{1}</h2>"
      "<span class=\"aside\">{2}</span></div>{3}</section>\n",
      id, title, aside, body);
}

std::string tally_text(const Tally& tally) {
  return tally.total == 0 ? "none" : fmt::format("{} of {} passed", tally.passed, tally.total);
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

// Where each step stands on a common time line, as fractions.
struct Bar {
  double left = 0;
  double width = 0;
};

struct TimeLine {
  std::vector<Bar> bars;
  double seconds = 0;
};

bool ran(const StepView& step) { return step.seconds && std::isfinite(*step.seconds) && *step.seconds >= 0; }

TimeLine time_line(const RunView& run) {
  // Without a start time for every step that ran, they are laid end to end.
  const bool placed = std::all_of(run.steps.begin(), run.steps.end(), [&](const StepView& step) {
    return !ran(step) || (step.started_us && *step.started_us >= run.started_us);
  });
  TimeLine line;
  std::vector<double> starts;
  for (const StepView& step : run.steps) {
    const double start = placed && step.started_us
                             ? (static_cast<double>(*step.started_us) - static_cast<double>(run.started_us)) / 1e6
                             : line.seconds;
    starts.push_back(start);
    if (ran(step)) line.seconds = std::max(line.seconds, start + *step.seconds);
  }
  for (size_t i = 0; i < run.steps.size(); ++i) {
    Bar bar;
    if (ran(run.steps[i]) && line.seconds > 0) {
      bar = {.left = starts[i] / line.seconds, .width = *run.steps[i].seconds / line.seconds};
    }
    line.bars.push_back(bar);
  }
  return line;
}

std::string step_row(const StepView& step, const Bar& bar) {
  std::string notes;
  for (const std::string& note : step_notes(step)) {
    notes += fmt::format(R"(<span class="note">{}</span>)", escape_markup(note));
  }
  if (!step.reason.empty()) notes += fmt::format(R"(<span class="reason">{}</span>)", escape_markup(step.reason));
  std::string track;
  if (ran(step)) {
    track = fmt::format(R"(<i class="{}" style="left:{:.2f}%;width:{:.2f}%"></i>)", outcome_class(step.outcome),
                        100 * bar.left, 100 * bar.width);
  }
  const std::string memory = step.max_rss_bytes ? bytes_text(static_cast<double>(*step.max_rss_bytes)) : kNotMeasured;
  return fmt::format(
      R"(<tr><td class="num">{}</td><th scope="row">{}{}</th><td>{}</td><td class="track-cell"><div class="track">{}</div></td><td class="num">{}</td><td class="num">{}</td></tr>)",
      step.number, escape_markup(step.name), notes, badge(step.outcome), track, seconds_text(step.seconds), memory);
}

// Rows of group, name, value become one table a group.
std::string group_table(const std::string& group, const Json& entries) {
  std::string rows;
  if (!entries.is_object()) {
    rows = fmt::format(R"(<tr><td colspan="2">{}</td></tr>)", escape_markup(value_text(entries)));
  } else {
    for (const auto& [name, value] : entries.items()) {
      rows += fmt::format(R"(<tr><th scope="row">{}</th><td>{}</td></tr>)", escape_markup(name),
                          escape_markup(value_text(value)));
    }
  }
  return fmt::format(R"(<div class="card group"><h3>{}</h3><table class="pairs"><tbody>{}</tbody></table></div>)",
                     escape_markup(capitalised(group)), rows);
}

std::string matrix_table_markup(const Matrix& matrix) {
  std::string head = R"(<th scope="col">strategy</th>)";
  for (const std::string& column : matrix.columns) {
    head += fmt::format(R"(<th scope="col">{}</th>)", escape_markup(column));
    for (const char* figure : kMatrixFigures) head += fmt::format(R"(<th scope="col" class="num">{}</th>)", figure);
  }
  std::string rows;
  for (const std::string& row : matrix.rows) {
    rows += fmt::format(R"(<tr><th scope="row">{}</th>)", escape_markup(row));
    for (const std::string& column : matrix.columns) {
      const Verdict* verdict = matrix.at(row, column);
      const bool skipped = verdict && verdict->outcome == Outcome::Skipped;
      rows += !verdict || skipped ? fmt::format(R"(<td title="{}">{}</td>)",
                                                verdict ? escape_markup(verdict->reason) : "", matrix_outcome(verdict))
                                  : fmt::format("<td>{}</td>", badge(verdict->outcome));
      for (const std::string& figure : matrix_figures(verdict)) {
        rows += fmt::format(R"(<td class="num">{}</td>)", escape_markup(figure));
      }
    }
    rows += "</tr>";
  }
  return fmt::format(
      "<div class=\"card scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Against one process\"><table "
      "class=\"steps matrix\"><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>",
      head, rows);
}

std::string result_cards(const Result& result) {
  std::string out = R"(<div class="groups">)";
  for (const FigureGroup& group : all_figures(result)) {
    std::string rows;
    for (const Figure& figure : group.figures) {
      if (figure.note == "case" || figure.note == "step") continue;  // stand above the tables
      const bool same = figure.note.empty() || figure.note == figure.label;
      const std::string key = same ? "" : fmt::format(R"(<code>{}</code>)", escape_markup(figure.note));
      rows += fmt::format(R"(<tr><th scope="row">{}{}</th><td class="num">{}</td></tr>)",
                          escape_markup(capitalised(figure.label)), key, escape_markup(figure.value));
    }
    if (rows.empty()) continue;
    out += fmt::format(
        R"(<div class="card group"><h3>{}</h3><table class="pairs figures"><tbody>{}</tbody></table></div>)",
        escape_markup(capitalised(group.title)), rows);
  }
  return out + "</div>";
}

std::string comparison(const RunView& run) {
  std::string rows;
  for (size_t i = 0; i < run.case_results.size(); ++i) {
    const Result& result = run.case_results[i];
    rows += fmt::format(R"(<tr><th scope="row">{}</th>)", escape_markup(case_name(result, i)));
    for (const char* key : {keys::kFinalAccuracy, keys::kTarget, keys::kE2eTime, keys::kThroughputWhole,
                            keys::kThroughputTrain, keys::kThroughputCore, keys::kPeakMemory, keys::kMfu}) {
      rows += fmt::format(R"(<td class="num">{}</td>)", escape_markup(result_text(result, key)));
    }
    rows += "</tr>";
  }
  std::string titles;
  for (const char* title : {"accuracy", "target", "e2e time", keys::kThroughputWhole, keys::kThroughputTrain,
                            keys::kThroughputCore, "peak memory", "MFU"}) {
    titles += fmt::format(R"(<th scope="col" class="num">{}</th>)", title);
  }
  return fmt::format(
      R"(<div class="card scroll" tabindex="0" role="region" aria-label="All cases"><table><thead><tr><th scope="col">case</th>{}</tr></thead><tbody>{}</tbody></table></div>)",
      titles, rows);
}

}  // namespace

std::string outcome_class(Outcome outcome) { return lower(outcome_name(outcome)); }

std::string html_symbols() {
  // Drawn on a 16 x 16 grid in the colour of the text around them.
  const std::pair<const char*, const char*> symbols[] = {
      {"pass", "M3.5 8.5l3 3 6-7"},
      {"fail", "M4 4l8 8M12 4l-8 8"},
      {"error", "M8 3v6M8 12.6v.01"},
      {"invalid", "M5.6 6a2.4 2.4 0 1 1 3.6 2.1c-.8.5-1.2.9-1.2 1.7M8 12.8v.01"},
      {"skipped", "M4 8h8"}};
  std::string out = R"(<svg class="symbols" aria-hidden="true"><defs>)";
  for (const auto& [name, path] : symbols) {
    out += fmt::format(R"(<symbol id="icon-{}" viewBox="0 0 16 16"><path d="{}"/></symbol>)", name, path);
  }
  return out + "</defs></svg>\n";
}

std::string html_header(const RunView& run) {
  const Tally verdicts = tally_verdicts(run);
  const Tally steps = tally_steps(run);
  std::string out = fmt::format(
      R"(<header class="hero {0}"><div class="medal">{1}</div><div class="hero-text"><p class="outcome">{2}</p><h1>{3}</h1>)",
      outcome_class(run.outcome), icon(run.outcome), outcome_name(run.outcome),
      escape_markup(run.title.empty() ? run.id : run.title));
  if (!run.reason.empty()) out += fmt::format(R"(<p class="why">{}</p>)", escape_markup(run.reason));
  out += fmt::format(
      R"(<dl class="facts"><div><dt>Started</dt><dd>{}</dd></div><div><dt>Duration</dt><dd>{}</dd></div><div><dt>Verdicts</dt><dd>{}</dd></div><div><dt>Steps</dt><dd>{}</dd></div><div><dt>Run</dt><dd>{}</dd></div></dl>)",
      when_text(run.started_us), seconds_text(run_seconds(run)), tally_text(verdicts), tally_text(steps),
      escape_markup(run.id));
  if (!run.command.empty()) {
    out += fmt::format(R"(<p class="command"><span aria-hidden="true">$</span> <code>{}</code></p>)",
                       escape_markup(run.command));
  }
  return out + "</div></header>\n";
}

std::string html_headline(const RunView& run) {
  if (run.case_results.size() != 1) return "";
  std::string out = R"(<div class="tiles" role="list" aria-label="Result in short">)";
  for (const Figure& figure : headline(run.case_results[0])) {
    // The number large, its unit small: "2481" "images/s".
    const size_t blank = figure.value.find(' ');
    const bool timed = figure.value.find(" min ") != std::string::npos || figure.value.find(" h ") != std::string::npos;
    const size_t cut = timed ? std::string::npos : blank;
    const std::string unit = cut == std::string::npos ? "" : figure.value.substr(cut + 1);
    out += fmt::format(
        R"(<div class="tile card" role="listitem"><span class="label">{}</span><span class="value">{}{}</span><span class="note">{}</span></div>)",
        escape_markup(capitalised(figure.label)), escape_markup(figure.value.substr(0, cut)),
        unit.empty() ? "" : " <small>" + escape_markup(unit) + "</small>", escape_markup(figure.note));
  }
  return out + "</div>\n";
}

std::string html_verdicts(const RunView& run) {
  if (run.verdicts.empty()) {
    return section("verdicts", "Verdicts", "", R"(<p class="card empty">No question about this run was answered.</p>)");
  }
  const Matrix matrix = matrix_of(run);
  std::string cards = matrix.empty() ? "" : matrix_table_markup(matrix);
  cards += R"(<ul class="verdicts">)";
  for (const Verdict& verdict : run.verdicts) {
    const bool in_table = !verdict.row.empty();
    if (in_table && (verdict.outcome == Outcome::Pass || verdict.outcome == Outcome::Skipped)) continue;
    cards += fmt::format(
        R"(<li class="card verdict {0}"><span class="seal">{1}</span><h3>{2}</h3><span class="word">{4}</span><p>{3}</p></li>)",
        outcome_class(verdict.outcome), icon(verdict.outcome), escape_markup(capitalised(verdict.name)),
        escape_markup(verdict.reason), outcome_name(verdict.outcome));
  }
  return section("verdicts", "Verdicts", tally_text(tally_verdicts(run)), cards + "</ul>");
}

std::string html_steps(const RunView& run) {
  if (run.steps.empty()) {
    return section("steps", "Steps", "", R"(<p class="card empty">The plan had no step: nothing was run.</p>)");
  }
  const TimeLine line = time_line(run);
  std::string rows;
  for (size_t i = 0; i < run.steps.size(); ++i) rows += step_row(run.steps[i], line.bars[i]);
  return section(
      "steps", "Steps", tally_text(tally_steps(run)),
      fmt::format("<div class=\"card scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Steps\"><table "
                  "class=\"steps\"><thead><tr><th scope=\"col\" class=\"num\">#</th><th scope=\"col\">step</th>"
                  "<th scope=\"col\">outcome</th><th scope=\"col\"><span class=\"scale\"><span>0</span>"
                  "<span>{}</span></span></th><th scope=\"col\" class=\"num\">time</th><th scope=\"col\" "
                  "class=\"num\">peak memory</th></tr></thead><tbody>{}</tbody></table></div>",
                  seconds_text(line.seconds), rows));
}

std::string html_logs(const RunView& run) {
  std::string body;
  for (const StepView& step : run.steps) {
    if (step.outcome == Outcome::Pass || step.last_lines.empty()) continue;
    std::string lines;
    for (const std::string& line : step.last_lines) lines += escape_markup(plain_log_line(line)) + "\n";
    const std::string name = escape_markup(step.folder.empty() ? step.name : step.folder);
    body += fmt::format(
        R"(<div class="card log"><h3>{0} <span class="note">{1}</span></h3><pre tabindex="0" aria-label="Last lines of {0}">{2}</pre></div>)",
        name, exit_text(step), lines);
  }
  return body.empty() ? "" : section("log", "Last lines", "of steps that did not pass", body);
}

std::string html_results(const RunView& run) {
  if (run.case_results.empty()) return "";
  const bool several = run.case_results.size() > 1;
  std::string body = several ? comparison(run) : "";
  const bool in_table = !matrix_of(run).empty();  // many short runs: what each measured is of no interest
  for (size_t i = 0; i < run.case_results.size() && !in_table; ++i) {
    if (several) body += fmt::format("<h3 class=\"case\">{}</h3>", escape_markup(case_name(run.case_results[i], i)));
    body += result_cards(run.case_results[i]);
  }
  const std::string aside =
      several ? "- was not measured" : fmt::format("<code>{}</code>", escape_markup(case_name(run.case_results[0], 0)));
  return section("results", several ? "Results" : "Result", aside, body);
}

std::string html_environment(const RunView& run) {
  if (run.environment.empty()) return "";
  std::string body = R"(<div class="groups">)";
  for (const auto& [group, entries] : run.environment.items()) body += group_table(group, entries);
  return section("environment", "Environment", "", body + "</div>");
}

std::string html_parameters(const RunView& run) {
  if (run.parameters.empty()) return "";
  std::string rows;
  for (const auto& [key, value] : run.parameters.items()) {
    // Values of a configuration are shown as they would be written: null is a value here.
    const std::string text = value.is_string() ? value.get<std::string>() : to_line(value);
    rows += fmt::format(R"(<tr><th scope="row"><code>{}</code></th><td><code>{}</code></td></tr>)", escape_markup(key),
                        escape_markup(text));
  }
  return section(
      "parameters", "Parameters", fmt::format(R"(<span id="parameter-count">{}</span>)", run.parameters.size()),
      fmt::format("<div class=\"card\"><input id=\"parameter-filter\" type=\"search\" placeholder=\"Filter by name or "
                  "value\" aria-label=\"Filter parameters\" autocomplete=\"off\" spellcheck=\"false\" hidden><div "
                  "class=\"parameters scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Parameters\"><table "
                  "class=\"pairs\" id=\"parameter-table\"><thead class=\"quiet\"><tr><th scope=\"col\">key</th><th "
                  "scope=\"col\">value</th></tr></thead><tbody>{}</tbody></table></div></div>",
                  rows));
}

}  // namespace assay
