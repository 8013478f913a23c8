// assay train CASE: one training, with the unified run arguments.
#include <fmt/format.h>

#include "base/text.h"
#include "command.h"
#include "config/case.h"
#include "config/unified_args.h"
#include "frontends/native/native_chain.h"
#include "launch/host/port.h"
#include "run_plan.h"

namespace assay {

namespace {

struct TrainOptions {
  std::string key;
  std::string vendor;
  std::string division = "closed";
  std::string plan_file;
  std::vector<std::string> sets;
  std::map<std::string, std::optional<std::string>> unified;  // texts as typed, by name
  double time_limit_s = 0;
  std::optional<int> num_servers;
  std::string num_workers;
  bool dry_run = false;
};

std::vector<Option> unified_options(TrainOptions& options) {
  std::vector<Option> out;
  for (const UnifiedArgument& argument : unified_arguments()) {
    std::string names = "--" + argument.name;
    for (const std::string& alias : argument.aliases) names += ",--" + alias;
    out.push_back({.names = names,
                   .value = &options.unified[argument.name],
                   .help = argument.doc,
                   .group = "Run arguments",
                   .type = argument.kind == UnifiedArgument::Kind::Bool ? "BOOL" : "VALUE"});
  }
  return out;
}

UnifiedArgs given_arguments(const TrainOptions& options) {
  UnifiedArgs arguments;
  for (const auto& [name, text] : options.unified) {
    if (text) arguments.set(name, *text);
  }
  if (!options.num_workers.empty()) arguments.set("nproc_per_node", options.num_workers);
  return arguments;
}

Plan make_plan(const TrainOptions& options, const UnifiedArgs& arguments, const ResolvedCase& resolved) {
  if (arguments.get_bool("precision_align")) {
    throw UsageError("--precision_align: this version cannot compare with a reference run");
  }
  const int nnodes = resolved.key.nnodes;
  const int node_rank = arguments.get_int("node_rank");
  if (nnodes > 1 && !arguments.given("master_addr")) {
    throw UsageError(
        fmt::format("{} nodes need --master_addr, the address of node 0 that the others can reach", nnodes));
  }
  ChainLimits limits;
  if (options.time_limit_s > 0) limits.train_s = options.time_limit_s;
  Plan plan = train_plan(resolved, limits, node_rank);
  if (options.num_servers) set_servers(plan, resolved, *options.num_servers);
  std::map<std::string, std::string>& env = plan.steps[0].command.env;
  if (arguments.given("master_addr")) env["MASTER_ADDR"] = *arguments.get("master_addr");
  // On one host the launcher takes any free port; hosts must agree, so there it is the usual one.
  if (arguments.given("master_port") || nnodes > 1) env["MASTER_PORT"] = *arguments.get("master_port");
  return plan;
}

// Before there is a run: a port that somebody else has can only fail.
void check_master_port(const Plan& plan) {
  const Step& step = plan.steps[0];
  const auto port = step.command.env.find("MASTER_PORT");
  if (step.ranks.world_size() < 2 || step.ranks.node_rank != 0 || port == step.command.env.end()) return;
  check_port_free(static_cast<int>(parse_int(port->second).value()));
}

void train(const TrainOptions& options, Context& context) {
  UnifiedArgs arguments = given_arguments(options);
  for (const std::string& warning : arguments.apply_rules()) context.console.warn(warning);
  ResolveRequest request{.home = context.home,
                         .key = arguments.apply_to(CaseKey::parse(options.key)),
                         .vendor = options.vendor,
                         .division = division_of(options.division)};
  if (!options.plan_file.empty()) request.plan_file = options.plan_file;
  for (const Setting& setting : arguments.to_sets()) request.sets.push_back(setting);
  for (const std::string& set : options.sets) request.sets.emplace_back(set);
  const ResolvedCase resolved = resolve_case(request);
  const Plan plan = make_plan(options, arguments, resolved);
  std::vector<std::string> shown = {"assay", "train", resolved.key.text()};
  for (const std::string& word : arguments.arguments()) shown.push_back(word);
  if (options.num_servers) shown.insert(shown.end(), {"--server_num", std::to_string(*options.num_servers)});
  for (const std::string& set : options.sets) shown.insert(shown.end(), {"--set", set});
  std::string text = render_command(arguments.environment(resolved.key), shown);
  text.pop_back();
  context.console.info(text);
  if (options.dry_run) return show_plan(context, plan);
  check_ready(resolved);
  check_master_port(plan);

  const RunFolder folder = run_plan(context, plan);
  const StepState& step = folder.state().steps.at("train");
  const int reported = report_run(context, folder.path());
  // The worker's exit code is ours; where there is none, the outcome decides.
  context.exit_code = step.exit_code ? *step.exit_code : step.signal ? 128 + *step.signal : reported;
}

}  // namespace

Command train_command() {
  auto options = std::make_shared<TrainOptions>();
  Command command{
      .name = "train",
      .summary = "Train one case; the worker's exit code is the exit code",
      .examples =
          "  assay train resnet\n"
          "  assay train resnet --step 20                        a short run\n"
          "  assay train simplenet --batch_size 64 --lr 0.0005 --epoch 2\n"
          "  assay train resnet --set Optimizer.lr.name=cosine --dry-run\n"
          "  assay train gpt --nproc_per_node 4 --set Distributed.mp_degree=2      four processes: two by two\n"
          "  assay train deepfm --set Distributed.ps.mode=sync --server_num 2 --worker_num 2     parameter servers\n"
          "  assay train gpt --nnode 2 --node_rank 1 --nproc_per_node 2 --master_addr 10.0.0.1   on each of two hosts",
      .notes =
          "Exit codes of a failed training: 2 config, 10 data, 11 out of memory, 12 non-finite loss, 13 "
          "communication,\n"
          "14 timeout, 130 interrupted (assay resume continues), 1 unknown, 128+N killed by signal N.",
      .options = {{.names = "case",
                   .value = &options->key,
                   .help = "A case, see assay cases, or model:framework:hardware:nnodes:nproc:repeat",
                   .required = true},
                  {.names = "--vendor", .value = &options->vendor, .help = "Vendor whose settings apply"},
                  {.names = "--division", .value = &options->division, .help = "closed or open", .shows_default = true},
                  {.names = "--plan", .value = &options->plan_file, .help = "YAML file with settings of this plan"},
                  {.names = "--set",
                   .value = &options->sets,
                   .help = "Change a value: Engine.logging_freq=1 (repeatable)",
                   .one_per_use = true}},
      .run = [options](Context& context) { train(*options, context); },
      .complete = [](const Context& context) { return list_cases(context.home); }};
  for (Option& option : unified_options(*options)) command.options.push_back(std::move(option));
  command.options.push_back({.names = "--server_num",
                             .value = &options->num_servers,
                             .help = "Parameter servers, with Distributed.ps.mode; default 1",
                             .min = 1,
                             .max = 4096});
  command.options.push_back({.names = "--worker_num",
                             .value = &options->num_workers,
                             .help = "Their trainers: the same as --nproc_per_node",
                             .excludes = "--nproc_per_node"});
  command.options.push_back({.names = "--time-limit",
                             .value = &options->time_limit_s,
                             .help = "Seconds after which the training is stopped"});
  command.options.push_back({.names = "--dry-run", .value = &options->dry_run, .help = "Print the plan, run nothing"});
  return command;
}

}  // namespace assay
