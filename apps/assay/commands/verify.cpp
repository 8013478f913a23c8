// assay verify parallel CASE: every strategy of distributed training against one process.
#include <fmt/format.h>

#include "base/text.h"
#include "command.h"
#include "frontends/native/native_chain.h"
#include "frontends/parallel/matrix.h"
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

Command verify_command() {
  auto options = std::make_shared<VerifyOptions>();
  Command parallel{
      .name = "parallel",
      .summary = "Train a case by every strategy of distributed training and compare with one process",
      .examples =
          "  assay verify parallel gpt --tiny                        the whole table, in about a minute\n"
          "  assay verify parallel gpt --tiny --strategies dp2,tp2   two strategies\n"
          "  assay verify parallel gpt --precision float64 --steps 5 --set Model.num_attention_heads=4\n"
          "  assay verify parallel --list                            the strategies",
      .notes =
          "Each strategy trains from the same seed, without dropout, with the same batches. Every loss, and all "
          "weights\n"
          "after every step, may be at most 1e-10 (float64) or 1e-5 (float32) apart, relative. Where they are not, "
          "the\n"
          "reason names the step, the parameter, the position in it and the rank. Exit code 0: all are the same.",
      .options = {{.names = "case", .value = &options->key, .help = "A case, see assay cases"},
                  {.names = "--strategies",
                   .value = &options->strategies,
                   .help = "Only these: dp2,tp2,... (see --list)",
                   .delimiter = ','},
                  {.names = "--precision",
                   .value = &options->precisions,
                   .help = "float64, float32 or both",
                   .shows_default = true,
                   .delimiter = ','},
                  {.names = "--steps", .value = &options->num_steps, .help = "Training steps", .shows_default = true},
                  {.names = "--tiny",
                   .value = &options->tiny,
                   .help = "The case's model in a tiny size, with 8 samples per step"},
                  {.names = "--set",
                   .value = &options->sets,
                   .help = "Change a value in all runs: Model.num_layers=4 (repeatable)",
                   .one_per_use = true},
                  {.names = "--time-limit",
                   .value = &options->time_limit_s,
                   .help = "Seconds that each training may take; 0: no limit",
                   .shows_default = true},
                  {.names = "--keep",
                   .value = &options->keep,
                   .help = "Keep the checkpoints of strategies that passed too"},
                  {.names = "--list", .value = &options->list, .help = "List the strategies"},
                  {.names = "--dry-run", .value = &options->dry_run, .help = "Print the plan, run nothing"}},
      .run = [options](Context& context) { verify_parallel(*options, context); },
      .complete = [](const Context& context) { return list_cases(context.home); }};
  return {.name = "verify",
          .summary = "Prove something about a case",
          .examples = "  assay verify parallel gpt --tiny",
          .commands = {std::move(parallel)}};
}

}  // namespace assay
