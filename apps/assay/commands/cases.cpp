// assay cases: what can be run.
#include <fmt/format.h>

#include "base/json.h"
#include "config/case.h"
#include "context.h"
#include "report/table.h"

namespace assay {

void add_cases_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("cases", "List the standard cases");
  command->callback([&context] {
    Json cases = Json::array();
    for (const std::string& name : list_cases(context.home)) {
      const ResolvedCase found = resolve_case({.home = context.home, .key = CaseKey::parse(name)});
      cases.push_back({{"case", name},
                       {"framework", found.framework},
                       {"task", found.task},
                       {"data", found.data.name},
                       {"target", to_json(found.target)},
                       {"hash", found.hash()}});
    }
    if (cases.empty()) throw UsageError(fmt::format("no cases in {}", (context.home / "cases").string()));
    if (context.json) return context.console.print(to_pretty(cases) + "\n");
    Table table({{"case"}, {"framework"}, {"task"}, {"data"}, {"target"}});
    for (const Json& row : cases) {
      const Json& target = row["target"];
      table.add({row["case"].get<std::string>(), row["framework"].get<std::string>(), row["task"].get<std::string>(),
                 row["data"].get<std::string>(),
                 fmt::format("{} {} {}", target["metric"].get<std::string>(),
                             target["goal"] == "maximize" ? ">=" : "<=", target["value"].get<double>())});
    }
    context.console.print(table.text({.colours = colours_on(stdout)}));
  });
}

}  // namespace assay
