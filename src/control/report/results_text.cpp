#include "report/results_text.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "record/keys.h"
#include "report/escape.h"
#include "report/figures.h"
#include "report/markdown_table.h"
#include "report/plain_text.h"

namespace assay {

namespace {

constexpr char kFormulas[] =
    "e2e_time in seconds. p_whole, p_train and p_core are samples over the time of training with evaluation "
    "(raw_train_time), without it (no_eval_time), and of forward, backward and optimizer alone (pure_compute_time). "
    "\"-\" was not measured.\n"
    "\"a ± b\" is the mean over the rounds that count and half of its 95 % confidence interval (Student's t); a figure "
    "without ± is from one round.\n"
    "MFU = FLOPs of a sample x samples / (no_eval_time x peak FLOPS of the devices); \"-\" where the peak is not "
    "known.\n";

constexpr char kScalingFormula[] =
    "efficiency = (throughput of N processes / throughput of B processes) / (N / B), where B is the smallest number "
    "measured.\n";

// How a number of this figure is written, without its unit.
std::string figure_text(const FigureSpec& spec, double value) {
  if (spec.kind == FigureSpec::Kind::Bytes) return bytes_text(value);
  if (spec.kind == FigureSpec::Kind::Fraction) return fmt::format("{:.1f} %", 100 * value);
  return number_text(value);
}

// Of an uncertainty two digits are enough.
std::string margin_text(const FigureSpec& spec, double margin) {
  if (spec.kind == FigureSpec::Kind::Bytes || spec.kind == FigureSpec::Kind::Fraction) return figure_text(spec, margin);
  return margin >= 100 ? fmt::format("{:.0f}", margin) : fmt::format("{:.2g}", margin);
}

// "2481 ± 12", "2481", "-".
std::string description_text(const FigureSpec& spec, const Description& figure) {
  if (!figure.mean) return kNotMeasured;
  std::string out = figure_text(spec, *figure.mean);
  if (const auto margin = figure.margin()) out += " ± " + margin_text(spec, *margin);
  return out;
}

std::string mean_text(const CaseSummary& summary, const char* key) {
  const Description* figure = summary.figure(key);
  return figure ? description_text(*find_figure(key), *figure) : kNotMeasured;
}

std::string with_unit(const std::string& text, const std::string& unit) {
  return text == kNotMeasured || unit.empty() ? text : text + " " + unit;
}

std::string or_dash(const std::string& text) { return text.empty() ? kNotMeasured : text; }

std::string accuracy_text(const CaseSummary& summary, const Result& row) {
  std::string out = mean_text(summary, keys::kFinalAccuracy);
  if (out == kNotMeasured) return out;
  if (!row.figures.metric.empty() && row.figures.metric != "accuracy") out += " " + row.figures.metric;
  return out;
}

std::string memory_text(const CaseSummary& summary) {
  const auto used = summary.mean(keys::kPeakMemory);
  const auto total = summary.mean(keys::kTotalMemory);
  if (!used) return kNotMeasured;
  return total ? bytes_text(*used) + " / " + bytes_text(*total) : bytes_text(*used);
}

// The cells of one case; the first gets the marks of its footnotes.
std::vector<std::string> cells_of(const CaseSummary& summary) {
  const Result* row = summary.example();
  if (!row) return {summary.case_key, "-", "-", "-", "-", "-", "-", "-", "-", "-"};
  const std::string& unit = row->figures.unit;
  return {summary.case_key,
          or_dash(row->figures.precision),
          or_dash(row->figures.fix_hp),
          mean_text(summary, keys::kE2eTime),
          with_unit(mean_text(summary, keys::kThroughputWhole), unit),
          with_unit(mean_text(summary, keys::kThroughputTrain), unit),
          with_unit(mean_text(summary, keys::kThroughputCore), unit),
          accuracy_text(summary, *row),
          memory_text(summary),
          mean_text(summary, keys::kMfu)};
}

std::string scaling_table(const std::vector<Scaling>& families) {
  if (families.empty()) return "";
  std::string out = "\n" + markdown_titles({"config", ">processes", ">throughput", ">efficiency"});
  for (const Scaling& family : families) {
    for (const Scaling::Point& point : family.points) {
      out += markdown_row({point.case_key, fmt::format("{} x {}", point.nnodes, point.nproc),
                           with_unit(fmt::format("{} {}", family.figure, number_text(point.throughput)), family.unit),
                           fmt::format("{:.1f} %", 100 * point.efficiency)});
    }
  }
  return out + "\n" + kScalingFormula;
}

}  // namespace

std::string markdown_results(const std::vector<CaseSummary>& summaries) {
  std::string table = markdown_titles({"config", keys::kPrecision, keys::kFixHp, ">e2e_time", ">p_whole", ">p_train",
                                       ">p_core", ">acc", ">mem(used/total)", ">MFU"});
  std::set<std::string> systems;
  for (const CaseSummary& summary : summaries) systems.insert(summary.system);
  std::string notes;
  int number = 0;
  for (const CaseSummary& summary : summaries) {
    std::vector<std::string> remarks = summary.remarks();
    if (systems.size() > 1) remarks.insert(remarks.begin(), "measured on " + or_dash(summary.system));
    std::string marks;
    for (const std::string& remark : remarks) {
      marks += fmt::format(" [^{}]", ++number);
      notes += fmt::format("[^{}]: {}\n", number, escape_markdown(remark));
    }
    std::string line = markdown_row(cells_of(summary));
    const std::string name = escape_markdown(summary.case_key);
    line.insert(2 + name.size(), marks);
    table += line;
  }
  std::string out = table + scaling_table(scaling_of(summaries)) + "\n" + kFormulas;
  if (systems.size() == 1 && !systems.begin()->empty())
    out += fmt::format("System: {}.\n", escape_markdown(*systems.begin()));
  return notes.empty() ? out : out + "\n" + notes;
}

namespace {

std::string value_or_dash(const Result& row, const char* key) {
  const auto value = row.figures.value(key);
  return value ? figure_text(*find_figure(key), *value) : kNotMeasured;
}

std::string percent_text(double share) { return fmt::format("{:+.1f} %", 100 * share); }

Cell outcome_of_round(const Result& row) {
  if (!row.passed()) return {std::string(outcome_name(row.outcome)), Colour::Red};
  return row.is_suspect() ? Cell("suspect", Colour::Yellow) : Cell("Pass", Colour::Green);
}

std::string summary_line(const CaseSummary& summary) {
  std::vector<std::string> parts;
  for (const char* key : {keys::kThroughputTrain, keys::kThroughputWhole, keys::kE2eTime, keys::kFinalAccuracy}) {
    const Description* figure = summary.figure(key);
    if (!figure || !figure->mean) continue;
    std::string part = fmt::format("{} {}", key, mean_text(summary, key));
    if (figure->olympic_mean) part += fmt::format(" (olympic {})", number_text(*figure->olympic_mean));
    parts.push_back(part);
  }
  return fmt::format("{}: {} of {} rounds count{}{}\n", plain_text(summary.case_key), summary.num_counted(),
                     summary.rounds.size(), parts.empty() ? "" : ": ", join(parts, ", "));
}

}  // namespace

std::string history_text(const std::vector<Result>& rows, const Table::Layout& layout) {
  using Align = Table::Align;
  Table table({{"started"},
               {"case"},
               {"run"},
               {"round", Align::Right},
               {"outcome"},
               {keys::kThroughputTrain, Align::Right},
               {keys::kE2eTime, Align::Right},
               {"acc", Align::Right},
               {"step p50", Align::Right},
               {"jitter", Align::Right}});
  for (const Result& row : rows) {
    table.add({when_text(row.started_us), row.case_key, row.run,
               row.round > 0 ? fmt::to_string(row.round) : kNotMeasured, outcome_of_round(row),
               with_unit(value_or_dash(row, keys::kThroughputTrain), row.figures.unit),
               value_or_dash(row, keys::kE2eTime), value_or_dash(row, keys::kFinalAccuracy),
               value_or_dash(row, keys::kStepTimeP50), value_or_dash(row, keys::kJitter)});
  }
  std::string out = table.text(layout) + "\n";
  for (const CaseSummary& summary : summarise(rows)) out += summary_line(summary);
  return out;
}

namespace {

Colour change_colour(const FigureChange& change) {
  if (change.regression) return Colour::Red;
  if (change.change == Change::Better) return Colour::Green;
  return change.change == Change::Worse || change.change == Change::Inconclusive ? Colour::Yellow : Colour::Plain;
}

std::string side_text(const FigureSpec& spec, const Description& side) {
  return fmt::format("{} (n={})", description_text(spec, side), side.n);
}

std::string verdict_text(const RunComparison& comparison) {
  switch (comparison.exit_code()) {
    case kExitFail:
      return fmt::format("{} regression{} beyond the threshold, {} case{} no longer pass{}\n",
                         comparison.num_regressions, comparison.num_regressions == 1 ? "" : "s", comparison.num_broken,
                         comparison.num_broken == 1 ? "" : "s", comparison.num_broken == 1 ? "es" : "");
    case kExitInvalid:
      return fmt::format("nothing could be compared: a statement takes {} rounds of a case on each side\n", kMinRounds);
    default:
      return fmt::format(
          "no regression beyond the threshold; {} figures compared, of which chance alone makes about {:.0f} "
          "look different\n",
          comparison.num_compared, std::ceil((1 - kConfidence) * static_cast<double>(comparison.num_compared)));
  }
}

}  // namespace

namespace {

void add_change(Table& table, const std::string& case_key, const FigureChange& change) {
  const FigureSpec& spec = *find_figure(change.figure);
  const Comparison& c = change.comparison;
  std::string answer = change.word;
  if (change.regression) answer += fmt::format(", beyond {} %", number_text(*change.threshold));
  table.add({case_key, change.figure, side_text(spec, c.baseline), side_text(spec, c.measured),
             c.relative ? percent_text(*c.relative) : kNotMeasured,
             c.interval ? fmt::format("{} to {}", percent_text(c.interval->low), percent_text(c.interval->high))
                        : kNotMeasured,
             c.p_value ? fmt::format("{:.2g}", *c.p_value) : kNotMeasured,
             c.effect_size ? fmt::format("{:+.1f}", *c.effect_size) : kNotMeasured,
             Cell(answer, change_colour(change))});
}

}  // namespace

std::string diff_text(const RunComparison& comparison, const Table::Layout& layout) {
  using Align = Table::Align;
  Table table({{"case"},
               {"figure"},
               {"baseline", Align::Right},
               {"measured", Align::Right},
               {"change", Align::Right},
               {"95 %", Align::Right},
               {"p", Align::Right},
               {"g", Align::Right},
               {"answer"}});
  std::string notes;
  for (const CaseChange& item : comparison.cases) {
    const std::string name = plain_text(item.case_key);
    if (!item.missing.empty()) {
      table.add({name, "", "", "", "", "", "", "", Cell(item.missing, item.broken ? Colour::Red : Colour::Yellow)});
    }
    for (const FigureChange& change : item.figures) {
      add_change(table, name, change);
      if (!change.comparison.reason.empty()) {
        notes += fmt::format("{} {}: {}\n", name, change.figure, change.comparison.reason);
      }
    }
    for (const std::string& remark : item.remarks) notes += fmt::format("{}: {}\n", name, plain_text(remark));
  }
  return table.text(layout) + (notes.empty() ? "" : "\n" + notes) + "\n" + verdict_text(comparison);
}

}  // namespace assay
