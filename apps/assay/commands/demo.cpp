// assay demo: the whole way, on a real model and real data.
#include "config/case.h"
#include "context.h"
#include "plan/cases/native_chain.h"
#include "run_plan.h"

namespace assay {

void add_demo_command(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("demo", "Train a model on real data, evaluate, export, run the export, judge and report");
  command->footer("Examples:\n  assay demo\n  assay demo --dry-run\n  assay demo --case simplenet --json");
  struct Options {
    std::string case_name = "resnet-demo";
    std::vector<std::string> sets;
    bool dry_run = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("--case", options->case_name, "The case to run")->capture_default_str();
  command->add_option("--set", options->sets, "Change a value: Engine.num_train_epochs=1 (repeatable)")
      ->allow_extra_args(false);
  command->add_flag("--dry-run", options->dry_run, "Print the plan, run nothing");
  command->callback([options, &context] {
    ResolveRequest request{.home = context.home, .key = CaseKey::parse(options->case_name)};
    for (const std::string& set : options->sets) request.sets.emplace_back(set);
    const ResolvedCase resolved = resolve_case(request);
    constexpr ChainLimits kLimits = {.train_s = 3600, .other_s = 600};
    const Plan plan = chain_plan(resolved, kLimits);
    if (options->dry_run) return show_plan(context, plan);
    check_ready(resolved);
    const RunFolder folder = run_plan(context, plan);
    context.exit_code = report_run(context, folder.path());
  });
}

}  // namespace assay
