// assay config: every effective value of a case, and where it comes from.
#include <fmt/format.h>

#include <memory>

#include "command.h"
#include "config/case.h"
#include "config/listing.h"

namespace assay {

namespace {

struct ConfigOptions {
  std::string key;
  std::string vendor;
  std::string division = "closed";
  std::string plan;
  std::vector<std::string> sets;
  bool worker = false;
  bool schema = false;
  bool markdown = false;
};

void show_schema(const Context& context, const ConfigOptions& options, const Paint& paint) {
  if (context.json) return context.console.print(to_pretty(schema_json()) + "\n");
  context.console.print(options.markdown ? schema_markdown() + "\n" + names_markdown() : render_schema(paint));
}

void show_config(const Context& context, const ConfigOptions& options) {
  const Paint paint = [&](std::string_view text, Colour colour) { return context.console.paint(text, colour); };
  if (options.schema) return show_schema(context, options, paint);
  if (options.key.empty()) throw UsageError("which case? Write assay config KEY; assay cases lists them");
  ResolveRequest request{.home = context.home, .key = CaseKey::parse(options.key)};
  request.vendor = options.vendor;
  request.division = division_of(options.division);
  if (!options.plan.empty()) request.plan_file = options.plan;
  request.sets = {options.sets.begin(), options.sets.end()};
  const ResolvedCase resolved = resolve_case(request);
  if (options.worker) return context.console.print(to_pretty(resolved.worker_json()) + "\n");
  context.console.print(context.json ? to_pretty(resolved.describe()) + "\n" : render_config(resolved, paint));
}

}  // namespace

Command config_command() {
  auto options = std::make_shared<ConfigOptions>();
  return {.name = "config",
          .summary = "Show every effective value of a case, and where it comes from",
          .examples = R"(  assay config resnet
  assay config resnet --set Engine.max_steps=20 --set Model.blocks.0=2
  assay config resnet:libtorch:cpu:1:1:1 --vendor cpu --json
  assay config resnet --worker > resnet.json
  assay config --schema)",
          .options = {{.names = "key",
                       .value = &options->key,
                       .help = "Case: a model, or model:framework:hardware:nnodes:nproc:repeat"},
                      {.names = "--vendor", .value = &options->vendor, .help = "Vendor whose configuration applies"},
                      {.names = "--division",
                       .value = &options->division,
                       .help = "closed (default) or open: whether every key may be changed"},
                      {.names = "--plan", .value = &options->plan, .help = "YAML file with the plan's values"},
                      {.names = "--set",
                       .value = &options->sets,
                       .help = "a.b.0.c=value, repeatable; the value is YAML, null sets null",
                       .one_per_use = true},
                      {.names = "--worker",
                       .value = &options->worker,
                       .help = "As JSON, the file that assay-worker train --config reads"},
                      {.names = "--schema",
                       .value = &options->schema,
                       .help = "List every known key with type, default and meaning"},
                      {.names = "--markdown",
                       .value = &options->markdown,
                       .help = "With --schema: the tables of docs/reference/configuration.md"}},
          .run = [options](Context& context) { show_config(context, *options); },
          .complete = [](const Context& context) { return list_cases(context.home); }};
}

}  // namespace assay
