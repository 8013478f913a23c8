// assay cases: what can be run, and how it went the last time.
#include <fmt/format.h>

#include "base/json.h"
#include "base/time.h"
#include "command.h"
#include "config/case.h"
#include "report/case_result.h"
#include "report/figures.h"
#include "report/table.h"

namespace assay {

namespace {

// 92.9K, 25.6M, 174.6B
std::string parameters_text(const std::optional<int64_t>& count) {
  if (!count) return kNotMeasured;
  constexpr const char* kUnits[] = {"", "K", "M", "B"};
  size_t unit = 0;
  auto value = static_cast<double>(*count);
  for (; value >= 1000 && unit < 3; ++unit) value /= 1000;
  return fmt::format("{:.{}f}{}", value, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string target_text(const Target& target) {
  return fmt::format("{} {} {}", target.metric, target.goal == Goal::Maximize ? ">=" : "<=", target.value);
}

// A result, and where it is from.
struct KnownResult {
  CaseResult result;
  bool is_stored = false;   // with the case, not of a run here
  bool is_current = false;  // of the case as it is now, with nothing changed
};

// Of the newest run here, or else the one that is stored with the case.
std::optional<KnownResult> known_result(const std::string& name, const std::string& hash,
                                        const std::map<std::string, CaseResult>& last,
                                        const std::vector<CaseResult>& stored) {
  const auto known = [&](const CaseResult& result, bool is_stored) {
    return KnownResult{result, is_stored, result.hash == hash};
  };
  if (const auto run = last.find(name); run != last.end()) return known(run->second, /*is_stored=*/false);
  for (const CaseResult& result : stored) {
    if (result.case_name == name) return known(result, /*is_stored=*/true);
  }
  return std::nullopt;
}

Json last_json(const std::optional<KnownResult>& known) {
  if (!known) return nullptr;
  Json json = to_json(known->result);
  json["stored"] = known->is_stored;
  json["current"] = known->is_current;
  return json;
}

// 0.9159 reached 2026-11-16
Cell last_text(const std::optional<KnownResult>& known) {
  if (!known) return kNotMeasured;
  const CaseResult* last = &known->result;
  const std::string day = utc_text(last->started_us).substr(0, 10);
  const std::string value = last->value ? number_text(*last->value) : kNotMeasured;
  if (last->outcome != Outcome::Pass || !last->reached) {
    const std::string_view end = last->outcome ? outcome_name(*last->outcome) : "unfinished";
    return {fmt::format("{} {} {}", value, end, day), Colour::Yellow};
  }
  if (known->is_stored) return {fmt::format("{} {}", value, known->is_current ? "stored" : "outdated")};
  return {fmt::format("{} {} {}", value, *last->reached ? "reached" : "missed", day),
          *last->reached ? Colour::Green : Colour::Yellow};
}

void list_cases_with_results(Context& context) {
  const std::map<std::string, CaseResult> last = last_results(context.runs);
  std::map<std::string, std::vector<CaseResult>> stored;  // by model
  Json cases = Json::array();
  Table table({{"case"}, {"parameters", Table::Align::Right}, {"data"}, {"target"}, {"last result"}});
  for (const std::string& name : list_cases(context.home)) {
    const ResolvedCase found = resolve_case({.home = context.home, .key = CaseKey::parse(name)});
    const std::string model = find_case(context.home, name)->model;
    const std::string hash = found.hash();
    if (!stored.contains(model)) stored[model] = read_case_results(context.home / "cases" / model);
    const auto known = known_result(name, hash, last, stored.at(model));
    cases.push_back({{"case", name},
                     {"model", model},
                     {"size", name == model ? Json(nullptr) : Json(name.substr(model.size() + 1))},
                     {"framework", found.framework},
                     {"task", found.task},
                     {"parameters", found.num_parameters ? Json(*found.num_parameters) : Json(nullptr)},
                     {"data", found.data.name},
                     {"target", to_json(found.target)},
                     {"hash", hash},
                     {"last_result", last_json(known)}});
    table.add(
        {name, parameters_text(found.num_parameters), found.data.name, target_text(found.target), last_text(known)});
  }
  if (cases.empty()) throw UsageError(fmt::format("no cases in {}", (context.home / "cases").string()));
  context.console.print(context.json ? to_pretty(cases) + "\n" : table.text({.colours = colours_on(stdout)}));
}

}  // namespace

Command cases_command() {
  return {.name = "cases",
          .summary = "List the standard cases, with their sizes, targets and last results",
          .examples = "  assay cases\n  assay cases --json           the exact numbers",
          .notes =
              "A result is that of the newest run of the case in the folder of runs: the metric, whether it reached\n"
              "the target (or how the run ended), and the day. Without a run it is the one stored with the case:\n"
              "outdated, when the case was changed since.",
          .run = list_cases_with_results};
}

}  // namespace assay
