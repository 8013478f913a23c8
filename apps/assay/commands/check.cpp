// assay check: is what others contributed fit to be run?
#include <fmt/format.h>

#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "command.h"
#include "config/case.h"
#include "vendor/check.h"

namespace assay {

namespace {

std::string check_line(const Console& console, const VendorCheck& check) {
  const std::string word = check.passed ? console.paint("pass", Colour::Green) : console.paint("FAIL", Colour::Red);
  std::string out = fmt::format("{}  {} {}\n", word, check.vendor, check.check);
  for (const std::string& problem : check.problems) {
    out += fmt::format("      {}{}\n", check.passed ? "warning: " : "", problem);
  }
  return out;
}

void check_vendors(Context& context, std::vector<std::string> vendors) {
  if (vendors.empty()) vendors = list_vendors(context.home);
  if (vendors.empty()) throw UsageError(fmt::format("no vendors in {}", (context.home / "vendors").string()));
  std::vector<VendorCheck> checks;
  for (const std::string& vendor : vendors) {
    for (VendorCheck& check : check_vendor(context.home, vendor, program_folder() / "plugins")) {
      checks.push_back(std::move(check));
    }
  }
  size_t failed = 0;
  Json list = Json::array();
  std::string text;
  for (const VendorCheck& check : checks) {
    if (!check.passed) ++failed;
    list.push_back(to_json(check));
    text += check_line(context.console, check);
  }
  text += fmt::format("{} checks of {} vendors, {} failed\n", checks.size(), vendors.size(), failed);
  const Json all = {{"checks", list}, {"failed", failed}};
  context.console.print(context.json ? to_pretty(all) + "\n" : text);
  if (failed > 0) context.exit_code = kExitFail;
}

}  // namespace

Command check_command() {
  auto names = std::make_shared<std::vector<std::string>>();
  Command vendor{.name = "vendor",
                 .summary = "Check vendors' folders: devices, configurations, environment, plugin",
                 .examples = "  assay check vendor             all vendors\n  assay check vendor nvidia --json",
                 .notes =
                     "One line per check. A configuration file may change only what its case lists under mutable.\n"
                     "Exit codes: 0 all passed, 1 a check failed, 2 there is no such vendor.",
                 .options = {{.names = "vendor", .value = names.get(), .help = "Vendors; all when none is named"}},
                 .run = [names](Context& context) { check_vendors(context, *names); },
                 .complete = [](const Context& context) { return list_vendors(context.home); }};
  return {.name = "check",
          .summary = "Check what vendors contribute, before a campaign needs it",
          .examples = "  assay check vendor nvidia",
          .commands = {std::move(vendor)}};
}

}  // namespace assay
