// assay data list: which data sets there are, and which of them are ready here.
#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "command.h"
#include "config/data_home.h"
#include "datasets/prepare.h"
#include "report/table.h"

namespace assay {

namespace {

Json row_of(const DataSet& set, const fs::path& home) {
  const DataCheck check = check_data_set(set, home);
  const bool known = check.state == DataState::Ready;
  Json row = {{"name", set.name},
              {"summary", set.summary},
              {"licence", set.licence},
              {"layout", set.layout},
              {"bytes", known ? Json(check.manifest.num_bytes()) : Json(nullptr)},
              {"sources", Json::array()},
              {"state", state_name(check.state)},
              {"problem", check.problem.empty() ? Json(nullptr) : Json(check.problem)},
              {"path", (home / set.name).string()},
              {"counts", known ? check.manifest.counts : Json(nullptr)}};
  for (const Source& source : set.sources) row["sources"].push_back(source.text());
  return row;
}

void print_rows(const Json& rows, Context& context) {
  Table table({{"data set"}, {"state"}, {"size", Table::Align::Right}, {"licence"}, {"source"}, {"path"}});
  for (const Json& row : rows) {
    const std::string state = row["state"].get<std::string>();
    const Colour colour = state == "ready" ? Colour::Green : state == "damaged" ? Colour::Red : Colour::Dim;
    const bool ready = !row["bytes"].is_null();
    table.add({row["name"].get<std::string>(),
               {state, colour},
               ready ? short_number(row["bytes"].get<double>()) + "B" : "-",
               row["licence"].get<std::string>(),
               join(row["sources"].get<std::vector<std::string>>(), ", "),
               ready ? row["path"].get<std::string>() : "-"});
  }
  context.console.print(table.text({.colours = colours_on(stdout)}));
  for (const Json& row : rows) {
    if (row["problem"].is_null()) continue;
    const std::string name = row["name"].get<std::string>();
    context.console.warn(fmt::format("{} is damaged: {}. To make it anew: assay data prepare {} --force", name,
                                     row["problem"].get<std::string>(), name));
  }
}

}  // namespace

Command data_list_command() {
  auto dir = std::make_shared<std::string>();
  return {.name = "list",
          .summary = "Every data set: licence, size, source, state, path",
          .examples = "  assay data list\n  assay data list --json\n  assay data list --dir /data",
          .options = {{.names = "--dir",
                       .value = dir.get(),
                       .help = "Folder that holds all data sets (default: $ASSAY_DATA or ~/.local/share/assay/data)"}},
          .run = [dir](Context& context) {
            const fs::path home = dir->empty() ? data_home() : fs::absolute(*dir).lexically_normal();
            Json rows = Json::array();
            for (const DataSet& set : data_sets()) rows.push_back(row_of(set, home));
            if (context.json) return context.console.print(to_pretty(rows) + "\n");
            print_rows(rows, context);
          }};
}

}  // namespace assay
