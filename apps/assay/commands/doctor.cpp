// assay doctor: what this machine has, and for each problem the command that fixes it.
#include <fmt/format.h>

#include "base/process.h"
#include "base/text.h"
#include "command.h"
#include "config/case.h"
#include "doctor/machine.h"
#include "monitor/environment.h"
#include "report/table.h"

namespace assay {

namespace {

void ask_worker(MachineFacts& facts) {
  try {
    const auto worker = program_folder() / "assay-worker";
    const CapturedOutput output = capture({.argv = {worker.string(), "info", "--measure"}}, 60);
    if (output.status.ok()) {
      facts.worker = parse_json(output.out, "assay-worker info");
    } else {
      facts.worker_error = fmt::format("{}: {}", output.status.text(), trim(output.err));
    }
  } catch (const Error& error) {
    facts.worker_error = error.what();
  }
}

Json data_sets(const fs::path& home) {
  std::map<std::string, Json> by_name;
  for (const std::string& name : list_cases(home)) {
    const ResolvedCase found = resolve_case({.home = home, .key = CaseKey::parse(name)});
    if (!found.data.path) continue;
    bool complete = true;
    for (const auto& [file, hash] : found.data.sha256) complete = complete && fs::exists(*found.data.path / file);
    by_name[found.data.name] = {
        {"name", found.data.name},
        {"path", found.data.path->string()},
        {"found", complete && fs::is_directory(*found.data.path)},
        {"package", found.data.name == "fashion-mnist" ? Json("dataset-fashion-mnist") : Json(nullptr)}};
  }
  Json list = Json::array();
  for (auto& [name, entry] : by_name) list.push_back(std::move(entry));
  return list;
}

Json free_bytes(const fs::path& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(fs::exists(folder) ? folder : fs::current_path(), error);
  return error ? Json(nullptr) : Json(space.available);
}

std::string_view state_name(Finding::State state) {
  return state == Finding::State::Good ? "good" : state == Finding::State::Note ? "note" : "problem";
}

void print_findings(Context& context, const std::vector<Finding>& findings) {
  Table table({{""}, {""}, {"", Table::Align::Left, true}});
  for (const Finding& finding : findings) {
    const Colour colour = finding.state == Finding::State::Good   ? Colour::Green
                          : finding.state == Finding::State::Note ? Colour::Dim
                                                                  : Colour::Red;
    table.add({{std::string(state_name(finding.state)), colour}, finding.name, finding.value});
    if (!finding.fix.empty()) table.add({"", "", {"fix: " + finding.fix, Colour::Yellow}});
  }
  context.console.print(table.text({.colours = colours_on(stdout), .titles = false}));
}

void examine(Context& context) {
  MachineFacts facts;
  facts.host = describe_environment();
  facts.data = data_sets(context.home);
  facts.disk_free_bytes = free_bytes(context.runs);
  ask_worker(facts);
  const std::vector<Finding> findings = examine_machine(facts);
  const bool good = std::none_of(findings.begin(), findings.end(),
                                 [](const Finding& f) { return f.state == Finding::State::Problem; });
  if (context.json) {
    Json list = Json::array();
    for (const Finding& f : findings) {
      list.push_back({{"name", f.name},
                      {"state", state_name(f.state)},
                      {"value", f.value},
                      {"fix", f.fix.empty() ? Json(nullptr) : Json(f.fix)}});
    }
    context.console.print(to_pretty({{"findings", list}, {"host", facts.host}, {"worker", facts.worker}}) + "\n");
  } else {
    print_findings(context, findings);
  }
  context.exit_code = good ? kExitPass : kExitInfrastructure;
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .summary = "Is this machine set up right? Each problem with the command that fixes it",
          .examples = "  assay doctor\n  assay doctor --json",
          .notes = "Measures the BLAS for about a second. Exit code 0 when nothing is wrong, 4 otherwise.",
          .run = examine};
}

}  // namespace assay
