// assay demo: the whole way, on a real model and real data.
#include <memory>

#include "command.h"
#include "config/case.h"
#include "frontends/native/native_chain.h"
#include "run_plan.h"

namespace assay {

namespace {

struct DemoOptions {
  std::string case_name = "resnet-demo";
  std::vector<std::string> sets;
  bool dry_run = false;
};

void run_demo(const DemoOptions& options, Context& context) {
  ResolveRequest request{.home = context.home, .key = CaseKey::parse(options.case_name)};
  for (const std::string& set : options.sets) request.sets.emplace_back(set);
  const ResolvedCase resolved = resolve_case(request);
  constexpr ChainLimits kLimits = {.train_s = 3600, .other_s = 600};
  const Plan plan = chain_plan(resolved, kLimits);
  if (options.dry_run) return show_plan(context, plan);
  check_ready(resolved);
  const RunFolder folder = run_plan(context, plan);
  context.exit_code = report_run(context, folder.path());
}

}  // namespace

Command demo_command() {
  auto options = std::make_shared<DemoOptions>();
  return {
      .name = "demo",
      .summary = "Train a model on real data, evaluate, export, run the export, judge and report",
      .examples = "  assay demo\n  assay demo --dry-run\n  assay demo --case simplenet --json",
      .options = {{.names = "--case", .value = &options->case_name, .help = "The case to run", .shows_default = true},
                  {.names = "--set",
                   .value = &options->sets,
                   .help = "Change a value: Engine.num_train_epochs=1 (repeatable)",
                   .one_per_use = true},
                  {.names = "--dry-run", .value = &options->dry_run, .help = "Print the plan, run nothing"}},
      .run = [options](Context& context) { run_demo(*options, context); }};
}

}  // namespace assay
