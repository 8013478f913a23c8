// assay verify parallel CASE: every strategy of distributed training against one process.
#include <fmt/format.h>

#include "base/text.h"
#include "context.h"
#include "plan/cases/native_chain.h"
#include "plan/parallel/matrix.h"
#include "report/table.h"
#include "run_plan.h"

namespace assay {

namespace {

struct VerifyOptions {
  std::string key;
  std::vector<std::string> strategies;
  std::vector<std::string> precisions = {"float64", "float32"};
  std::vector<std::string> sets;
  int64_t num_steps = 20;
  double time_limit_s = 600;
  bool tiny = false;
  bool keep = false;
  bool list = false;
  bool dry_run = false;
};

void list_strategies(Context& context) {
  const Json all = strategies_json();
  if (context.json) return context.console.print(to_pretty(all) + "\n");
  Table table({{.title = "strategy"}, {.title = "processes", .align = Table::Align::Right}, {.title = "what"}});
  for (const Json& one : all) {
    table.add(
        {one["name"].get<std::string>(), std::to_string(one["processes"].get<int>()), one["what"].get<std::string>()});
  }
  context.console.print(table.text({.colours = colours_on(stdout)}));
}

void verify_parallel(const VerifyOptions& options, Context& context) {
  if (options.list) return list_strategies(context);
  if (options.key.empty()) throw UsageError("case is required, see assay cases");
  MatrixRequest request{.base = {.home = context.home, .key = CaseKey::parse(options.key)},
                        .strategies = options.strategies,
                        .precisions = options.precisions,
                        .num_steps = options.num_steps,
                        .tiny = options.tiny,
                        .keep = options.keep};
  for (const std::string& set : options.sets) request.base.sets.emplace_back(set);
  if (options.time_limit_s > 0) request.time_limit_s = options.time_limit_s;
  const MatrixPlan matrix = matrix_plan(request);
  if (options.dry_run) return show_plan(context, matrix.plan);
  check_ready(matrix.one_process);
  const RunFolder folder = run_plan(context, matrix.plan);
  context.exit_code = report_run(context, folder.path());
}

}  // namespace

void add_verify_command(CLI::App& app, Context& context) {
  auto* verify = app.add_subcommand("verify", "Prove something about a case");
  verify->require_subcommand(1);
  verify->fallthrough();
  auto* command = verify->add_subcommand(
      "parallel", "Train a case by every strategy of distributed training and compare with one process");
  command->fallthrough();
  command->footer(
      "Examples:\n"
      "  assay verify parallel gpt --tiny                        the whole table, in about a minute\n"
      "  assay verify parallel gpt --tiny --strategies dp2,tp2   two strategies\n"
      "  assay verify parallel gpt --precision float64 --steps 5 --set Model.num_attention_heads=4\n"
      "  assay verify parallel --list                            the strategies\n\n"
      "Each strategy trains from the same seed, without dropout, with the same batches. Every loss, and all weights\n"
      "after every step, may be at most 1e-10 (float64) or 1e-5 (float32) apart, relative. Where they are not, the\n"
      "reason names the step, the parameter, the position in it and the rank. Exit code 0: all are the same.");
  auto options = std::make_shared<VerifyOptions>();
  command->add_option("case", options->key, "A case, see assay cases");
  command->add_option("--strategies", options->strategies, "Only these: dp2,tp2,... (see --list)")->delimiter(',');
  command->add_option("--precision", options->precisions, "float64, float32 or both")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--steps", options->num_steps, "Training steps")->capture_default_str();
  command->add_flag("--tiny", options->tiny, "The case's model in a tiny size, with 8 samples a step");
  command->add_option("--set", options->sets, "Change a value in all runs: Model.num_layers=4 (repeatable)")
      ->allow_extra_args(false);
  command->add_option("--time-limit", options->time_limit_s, "Seconds that each training may take; 0: no limit")
      ->capture_default_str();
  command->add_flag("--keep", options->keep, "Keep the checkpoints of strategies that passed too");
  command->add_flag("--list", options->list, "List the strategies");
  command->add_flag("--dry-run", options->dry_run, "Print the plan, run nothing");
  command->callback([options, &context] { verify_parallel(*options, context); });
}

}  // namespace assay
