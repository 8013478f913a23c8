// assay import: configurations of other systems as ours.
#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "base/text.h"
#include "command.h"
#include "import/flagperf/import.h"
#include "report/table.h"

namespace assay {

namespace {

struct ImportOptions {
  std::string folder;
  std::string output = "imported";
  bool force = false;
};

std::string place_text(const std::string& file, int line) { return line > 0 ? fmt::format("{}:{}", file, line) : file; }

// Lists may have thousands of items; --json has them all.
std::string short_value(const std::string& text) {
  return display_width(text) <= 60 ? text : valid_utf8(text.substr(0, 57)) + "...";
}

std::string override_table(const FlagperfImport& import, const Table::Layout& layout) {
  if (import.overrides.empty()) return "No vendor changes what is immutable.\n";
  Table table({{"vendor"}, {"case"}, {"key"}, {"case's value"}, {"vendor's value"}, {"where"}});
  for (const FlagperfOverride& change : import.overrides) {
    table.add({change.vendor,
               fmt::format("{} {}", change.case_name, change.config),
               {change.key, Colour::Yellow},
               short_value(change.base),
               short_value(change.value),
               place_text(change.file, change.line)});
  }
  return fmt::format("Immutable names that vendors change ({}); the closed division refuses them:\n{}",
                     import.overrides.size(), table.text(layout));
}

std::string issue_table(const std::string& title, const std::vector<PythonIssue>& issues, const Table::Layout& layout) {
  if (issues.empty()) return "";
  Table table({{"where"}, {"sets"}, {"what"}});
  for (const PythonIssue& issue : issues) {
    std::string names;
    for (const std::string& name : issue.sets) names += (names.empty() ? "" : ", ") + name;
    table.add({place_text(issue.file, issue.line), names, issue.what});
  }
  return fmt::format("{} ({}):\n{}", title, issues.size(), table.text(layout));
}

Json import_json(const FlagperfImport& import, const std::string& output) {
  Json json = {{"output", output},          {"files", Json::array()},     {"cases", import.cases},
               {"vendors", import.vendors}, {"overrides", Json::array()}, {"not_read", Json::array()},
               {"notes", Json::array()}};
  for (const auto& [name, content] : import.files) json["files"].push_back(name);
  for (const FlagperfOverride& change : import.overrides) json["overrides"].push_back(to_json(change));
  for (const PythonIssue& issue : import.not_read) json["not_read"].push_back(to_json(issue));
  for (const PythonIssue& issue : import.notes) json["notes"].push_back(to_json(issue));
  return json;
}

void run_import(Context& context, const ImportOptions& options) {
  const FlagperfTree tree = read_flagperf_tree(options.folder);
  const FlagperfImport import = import_flagperf(tree);
  if (import.files.empty()) {
    throw ConfigError(fmt::format("{}: no case, vendor or campaign of FlagPerf could be read", options.folder));
  }
  write_import(import, options.output, options.force);
  const Table::Layout layout{.colours = colours_on(stdout), .indent = 2};
  if (context.json) {
    context.console.print(to_pretty(import_json(import, options.output)) + "\n");
  } else {
    std::string text = override_table(import, layout) + issue_table("Not read", import.not_read, layout);
    if (context.console.level() != Console::Level::Quiet) text += issue_table("Notes", import.notes, layout);
    context.console.print(text);
    context.console.info(fmt::format("{}: {} cases and {} vendors, {} files", options.output, import.cases.size(),
                                     import.vendors.size(), import.files.size()));
  }
  if (!import.overrides.empty() || !import.not_read.empty()) context.exit_code = kExitFail;
}

}  // namespace

Command import_command() {
  auto options = std::make_shared<ImportOptions>();
  Command flagperf{
      .name = "flagperf",
      .summary = "Cases, vendors and the campaign of a FlagPerf tree",
      .examples = "  assay import flagperf FlagPerf/training --output imported\n  assay --home imported cases",
      .notes =
          "Python is read, never executed: what is more than values and arithmetic is named and left out.\n"
          "Exit codes: 0 all was read and no vendor changes what is immutable, 1 otherwise (the files are written\n"
          "all the same), 2 the folder is not a FlagPerf tree, or files are in the way.",
      .options = {{.names = "folder",
                   .value = &options->folder,
                   .help = "A checkout of FlagPerf, or its folder training",
                   .required = true},
                  {.names = "--output",
                   .value = &options->output,
                   .help = "Folder for cases/, vendors/ and campaign.yaml (default: imported)"},
                  {.names = "--force", .value = &options->force, .help = "Replace files that exist"}},
      .run = [options](Context& context) { run_import(context, *options); }};
  return {.name = "import",
          .summary = "Take over configurations of other systems",
          .examples = "  assay import flagperf FlagPerf/training",
          .commands = {std::move(flagperf)}};
}

}  // namespace assay
