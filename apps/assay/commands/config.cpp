// assay config: every effective value of a case, and where it comes from.
#include <fmt/format.h>

#include <memory>

#include "config/listing.h"
#include "context.h"

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

void add_config_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("config", "Show every effective value of a case, and where it comes from");
  auto options = std::make_shared<ConfigOptions>();
  command->add_option("key", options->key, "Case: a model, or model:framework:hardware:nnodes:nproc:repeat");
  command->add_option("--vendor", options->vendor, "Vendor whose configuration applies");
  command->add_option("--division", options->division, "closed (default) or open: whether every key may be changed");
  command->add_option("--plan", options->plan, "YAML file with the plan's values");
  command->add_option("--set", options->sets, "a.b.0.c=value, repeatable; the value is YAML, null sets null")
      ->expected(1)
      ->take_all();
  command->add_flag("--worker", options->worker, "As JSON, the file that assay-worker train --config reads");
  command->add_flag("--schema", options->schema, "List every known key with type, default and meaning");
  command->add_flag("--markdown", options->markdown, "With --schema: the tables of docs/configuration.md");
  command->footer(R"(Examples:
  assay config resnet
  assay config resnet --set Engine.max_steps=20 --set Model.blocks.0=2
  assay config resnet:libtorch:cpu:1:1:1 --vendor cpu --json
  assay config resnet --worker > resnet.json
  assay config --schema)");
  command->callback([&context, options] { show_config(context, *options); });
}

}  // namespace assay
