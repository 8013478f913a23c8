#include "results/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "config/case_key.h"
#include "record/keys.h"

namespace assay {

namespace {

std::string round_name(const Result& row) {
  return row.round > 0 ? fmt::format("{} round {}", row.run, row.round) : fmt::format("{} {}", row.run, row.step);
}

Json optional_number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

bool counts(const CaseSummary& summary, const Result& row) {
  return row.passed() && (summary.all_suspect || !row.is_suspect());
}

size_t CaseSummary::num_counted() const {
  return static_cast<size_t>(
      std::count_if(rounds.begin(), rounds.end(), [&](const Result& row) { return counts(*this, row); }));
}

const Result* CaseSummary::example() const {
  for (size_t i = rounds.size(); i > 0; --i) {
    if (counts(*this, rounds[i - 1])) return &rounds[i - 1];
  }
  return nullptr;
}

const Description* CaseSummary::figure(std::string_view key) const {
  const auto found = figures.find(std::string(key));
  return found == figures.end() ? nullptr : &found->second;
}

std::optional<double> CaseSummary::mean(std::string_view key) const {
  const Description* found = figure(key);
  return found ? found->mean : std::nullopt;
}

std::vector<double> CaseSummary::values(std::string_view key) const {
  std::vector<double> out;
  for (const Result& row : rounds) {
    const auto value = row.figures.value(key);
    if (value && counts(*this, row)) out.push_back(*value);
  }
  return out;
}

std::vector<std::string> CaseSummary::config_hashes() const {
  std::set<std::string> hashes;
  for (const Result& row : rounds) {
    if (counts(*this, row) && !row.config_hash().empty()) hashes.insert(row.config_hash());
  }
  return {hashes.begin(), hashes.end()};
}

std::vector<std::string> CaseSummary::remarks() const {
  std::vector<std::string> out;
  for (const Result& row : rounds) {
    if (!row.passed()) {
      out.push_back(fmt::format("{} did not pass ({}{}{}) and is left out", round_name(row), outcome_name(row.outcome),
                                row.reason.empty() ? "" : ": ", row.reason));
    } else if (row.is_suspect()) {
      std::vector<std::string> sentences;
      for (const Json& sentence : row.suspect) {
        if (sentence.is_string()) sentences.push_back(sentence.get<std::string>());
      }
      out.push_back(fmt::format("{} is suspect and {}: {}", round_name(row),
                                all_suspect ? "counted only because all rounds are" : "left out",
                                join(sentences, "; ")));
    }
    for (const std::string& warning : row.figures.warnings) {
      out.push_back(fmt::format("{}: {}", round_name(row), warning));
    }
  }
  if (const size_t different = config_hashes().size(); different > 1) {
    out.push_back(fmt::format("the rounds had {} different configurations", different));
  }
  return out;
}

std::vector<CaseSummary> summarise(const std::vector<Result>& rows) {
  std::vector<CaseSummary> out;
  for (const Result& row : rows) {
    const auto found = std::find_if(out.begin(), out.end(), [&](const CaseSummary& summary) {
      return summary.case_key == row.case_key && summary.system == row.system;
    });
    CaseSummary& summary = found == out.end() ? out.emplace_back() : *found;
    summary.case_key = row.case_key;
    summary.system = row.system;
    summary.rounds.push_back(row);
    if (!row.passed())
      ++summary.num_failed;
    else if (row.is_suspect())
      ++summary.num_suspect;
  }
  for (CaseSummary& summary : out) {
    std::stable_sort(summary.rounds.begin(), summary.rounds.end(),
                     [](const Result& a, const Result& b) { return a.started_us < b.started_us; });
    summary.all_suspect = summary.num_suspect > 0 && summary.num_suspect + summary.num_failed == summary.rounds.size();
    for (const FigureSpec& spec : figure_specs()) {
      const std::vector<double> values = summary.values(spec.key);
      if (!values.empty()) summary.figures[spec.key] = describe_values(values);
    }
  }
  return out;
}

namespace {

// "resnet:libtorch:A100"; empty for a name that is no key.
std::string family_of(const std::string& case_key) {
  try {
    const CaseKey key = CaseKey::parse(case_key);
    return fmt::format("{}:{}:{}", key.model, key.framework, key.hardware);
  } catch (const UsageError&) {
    return "";
  }
}

double world_of(const Scaling::Point& point) { return static_cast<double>(point.nnodes) * point.nproc; }

// By one kind of throughput. Values of another unit than the first have no ratio to it.
Scaling scaling_by(const char* figure, const std::vector<const CaseSummary*>& family) {
  Scaling out;
  out.figure = figure;
  for (const CaseSummary* summary : family) {
    const Result* row = summary->example();
    const auto mean = summary->mean(figure);
    if (!row || !mean || !(*mean > 0)) continue;
    if (out.points.empty()) out.unit = row->figures.unit;
    if (row->figures.unit != out.unit) continue;
    out.points.push_back(
        {.case_key = summary->case_key, .nnodes = row->nnodes, .nproc = row->nproc, .throughput = *mean});
  }
  std::stable_sort(out.points.begin(), out.points.end(),
                   [](const auto& a, const auto& b) { return world_of(a) < world_of(b); });
  for (Scaling::Point& point : out.points) {
    const Scaling::Point& base = out.points.front();
    point.efficiency = (point.throughput / base.throughput) / (world_of(point) / world_of(base));
  }
  return out;
}

}  // namespace

std::vector<Scaling> scaling_of(const std::vector<CaseSummary>& summaries) {
  std::map<std::pair<std::string, std::string>, std::vector<const CaseSummary*>> families;
  for (const CaseSummary& summary : summaries) {
    const std::string family = family_of(summary.case_key);
    if (!family.empty()) families[{family, summary.system}].push_back(&summary);
  }
  std::vector<Scaling> out;
  for (const auto& [name, members] : families) {
    Scaling best = scaling_by(keys::kThroughputTrain, members);
    Scaling whole = scaling_by(keys::kThroughputWhole, members);
    if (whole.points.size() > best.points.size()) best = std::move(whole);
    if (best.points.empty() || world_of(best.points.front()) == world_of(best.points.back())) continue;
    best.family = name.first;
    out.push_back(std::move(best));
  }
  return out;
}

Json to_json(const Description& d) {
  return {{"n", d.n},
          {"mean", optional_number(d.mean)},
          {"standard_deviation", optional_number(d.deviation)},
          {"ci95_low", d.interval ? Json(d.interval->low) : Json(nullptr)},
          {"ci95_high", d.interval ? Json(d.interval->high) : Json(nullptr)},
          {"olympic_mean", optional_number(d.olympic_mean)},
          {"median", optional_number(d.median)},
          {"min", optional_number(d.smallest)},
          {"max", optional_number(d.largest)}};
}

Json to_json(const CaseSummary& summary) {
  const Result* row = summary.example();
  Json out = {{"case", summary.case_key},
              {"system", summary.system},
              {"rounds", summary.rounds.size()},
              {"counted", summary.num_counted()},
              {"failed", summary.num_failed},
              {"suspect", summary.num_suspect},
              {keys::kPrecision, row && !row->figures.precision.empty() ? Json(row->figures.precision) : Json(nullptr)},
              {keys::kFixHp, row && !row->figures.fix_hp.empty() ? Json(row->figures.fix_hp) : Json(nullptr)},
              {"unit", row && !row->figures.unit.empty() ? Json(row->figures.unit) : Json(nullptr)},
              {"figures", Json::object()},
              {"remarks", summary.remarks()}};
  for (const FigureSpec& spec : figure_specs()) {
    const Description* figure = summary.figure(spec.key);
    out["figures"][spec.key] = figure ? to_json(*figure) : Json(nullptr);
  }
  return out;
}

Json to_json(const Scaling& scaling) {
  Json points = Json::array();
  for (const Scaling::Point& point : scaling.points) {
    points.push_back({{"case", point.case_key},
                      {"nnodes", point.nnodes},
                      {"nproc", point.nproc},
                      {"throughput", point.throughput},
                      {"efficiency", point.efficiency}});
  }
  return {{"family", scaling.family}, {"figure", scaling.figure}, {"unit", scaling.unit}, {"points", points}};
}

}  // namespace assay
