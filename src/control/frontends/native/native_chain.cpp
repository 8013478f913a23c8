#include "frontends/native/native_chain.h"

#include <fmt/format.h>

#include "base/error.h"
#include "config/data_home.h"
#include "datasets/catalogue.h"
#include "datasets/manifest.h"
#include "layout/run_layout.h"
#include "record/keys.h"

namespace assay {

namespace {

// Gates for an export that runs on the same libraries as the training: far inside the 0.1 % that vendors allow between
// two runtimes, far above what a different order of summation gives (about 1e-6).
constexpr double kMaxExportDiff2 = 1e-4;
constexpr double kMinExportTop1 = 0.999;
constexpr double kMaxAccuracyChange = 0.001;

// What the worker leaves in its output folder.
constexpr char kWeightsFile[] = "model.safetensors";
constexpr char kPredictionsFile[] = "predictions.safetensors";
constexpr char kExportFile[] = "model.pt";

std::string output_of(const Plan& plan, const char* step, const char* file) {
  return fmt::format("{}/{}/{}", plan.folder(step), layout::kOutput, file);
}

// One command of the worker. The names of its steps are the names of its commands.
struct WorkerStep {
  StepKind kind;
  std::vector<std::string> needs;
  std::vector<std::string> inputs;  // further arguments
  std::string output;               // the file that shows that it worked
  int nproc = 1;
  std::optional<double> time_limit_s;
};

void add_worker_step(Plan& plan, const ResolvedCase& resolved, const WorkerStep& what) {
  Step step;
  step.name = kind_name(what.kind);
  step.kind = what.kind;
  step.needs = what.needs;
  const std::string folder = plan.next_folder(step.name);
  step.command.argv = {"assay-worker", step.name,
                       "--config",     folder + "/" + layout::kConfig,
                       "--output",     folder + "/" + layout::kOutput};
  step.command.argv.insert(step.command.argv.end(), what.inputs.begin(), what.inputs.end());
  step.files.inputs = {{layout::kConfig, resolved.worker_json()}};
  if (!what.output.empty()) step.files.outputs = {fmt::format("{}/{}", layout::kOutput, what.output)};
  step.ranks.nproc = what.nproc;
  step.limits.time_limit_s = what.time_limit_s;
  plan.steps.push_back(std::move(step));
}

Plan new_plan(const ResolvedCase& resolved, const std::string& what) {
  return {.title = fmt::format("{} {} on {}", what, resolved.key.model, resolved.data.name),
          .case_key = resolved.key.text(),
          .steps = {}};
}

std::string server_mode(const ResolvedCase& resolved) {
  const Value* value = resolved.config.find("Distributed.ps.mode");
  return value && value->is_string() ? value->as_string() : "none";
}

void add_train(Plan& plan, const ResolvedCase& resolved, const ChainLimits& limits, int node_rank) {
  add_worker_step(plan, resolved,
                  {.kind = StepKind::Train,
                   .needs = {},
                   .inputs = {},
                   .output = node_rank == 0 ? kWeightsFile : "",
                   .nproc = resolved.key.nproc,
                   .time_limit_s = limits.train_s});
  Step& step = plan.steps.back();
  step.ranks.nnodes = resolved.key.nnodes;
  step.ranks.node_rank = node_rank;
  if (step.ranks.world_size() > 1) step.limits.max_restarts = max_restarts(resolved);
  if (server_mode(resolved) != "none") set_servers(plan, resolved, 1);
}

void add_evaluate_export_infer(Plan& plan, const ResolvedCase& resolved, const ChainLimits& limits) {
  const std::vector<std::string> weights = {"--weights", output_of(plan, "train", kWeightsFile)};
  add_worker_step(plan, resolved,
                  {.kind = StepKind::Evaluate,
                   .needs = {"train"},
                   .inputs = weights,
                   .output = kPredictionsFile,
                   .time_limit_s = limits.other_s});
  add_worker_step(plan, resolved,
                  {.kind = StepKind::Export,
                   .needs = {"train"},
                   .inputs = weights,
                   .output = kExportFile,
                   .time_limit_s = limits.other_s});
  add_worker_step(plan, resolved,
                  {.kind = StepKind::Infer,
                   .needs = {"export"},
                   .inputs = {"--model", output_of(plan, "export", kExportFile)},
                   .output = kPredictionsFile,
                   .time_limit_s = limits.other_s});
}

void add_verify(Plan& plan, const ResolvedCase& resolved) {
  const auto records = [&](const char* step) { return plan.folder(step) + "/" + layout::records_file(0); };
  const auto predictions = [&](const char* step) { return output_of(plan, step, kPredictionsFile); };
  Step verify;
  verify.name = "verify";
  verify.kind = StepKind::Verify;
  verify.needs = {"train", "evaluate", "infer"};
  const Json checks = {
      {{"type", "loss_falls"}, {"records", records("train")}},
      {{"type", "target"},
       {"name", fmt::format("{} reaches its target", resolved.target.metric)},
       {"records", records("evaluate")},
       {"key", keys::kFinalAccuracy},
       {"goal", resolved.target.goal == Goal::Maximize ? "maximize" : "minimize"},
       {"value", resolved.target.value}},
      {{"type", "same_predictions"},
       {"name", "the export predicts what the trained model predicts"},
       {"measured", predictions("infer")},
       {"baseline", predictions("evaluate")},
       {"tensor", "logits"},
       {"max_diff2", kMaxExportDiff2},
       {"min_top1", kMinExportTop1}},
      {{"type", "same_result"},
       {"name", fmt::format("the export has the same {}", resolved.target.metric)},
       {"measured", records("infer")},
       {"baseline", records("evaluate")},
       {"key", keys::kFinalAccuracy},
       {"max_relative", kMaxAccuracyChange}},
      {{"type", "same_weights"}, {"records", {records("train"), records("evaluate"), records("infer")}}}};
  for (const Json& check : checks) verify.checks.push_back(Check::parse(check));
  plan.steps.push_back(verify);
}

}  // namespace

void check_ready(const ResolvedCase& resolved) {
  if (!resolved.is_native()) {
    throw ConfigError(fmt::format("case {} is a command of its own, not a native case", resolved.key.model));
  }
  if (!resolved.data.path) return;
  const fs::path& folder = *resolved.data.path;
  const std::string& set = resolved.data.name;
  const auto missing = [&](const std::string& what) {
    std::string help = "give its folder with --dataset_path";
    if (find_data_set(set) && folder == data_home() / set) {
      help = fmt::format("prepare it: assay data prepare {}; or {}", set, help);
    } else if (set == "fashion-mnist") {
      help += ", or install it: sudo apt-get install dataset-fashion-mnist";
    }
    throw DataError(fmt::format("data set {}: {}; {}", set, what, help));
  };
  if (!fs::is_directory(folder)) missing(fmt::format("no folder {}", folder.string()));
  if (fs::exists(folder / kManifestFile)) {
    const DataCheck check = check_data(folder);
    if (check.state == DataState::Damaged) {
      throw DataError(fmt::format("data set {} is damaged: {}. To make it anew: assay data prepare {} --force{}", set,
                                  check.problem, check.manifest.name.empty() ? set : check.manifest.name,
                                  folder == data_home() / set ? "" : " --dir " + folder.parent_path().string()));
    }
  }
  for (const auto& [name, hash] : resolved.data.sha256) {
    if (!fs::exists(folder / name)) missing(fmt::format("no file {}", (folder / name).string()));
  }
}

void set_servers(Plan& plan, const ResolvedCase& resolved, int num_servers) {
  if (server_mode(resolved) == "none") {
    throw ConfigError(
        fmt::format("{} parameter servers: Distributed.ps.mode is none; set it to sync, async or geo", num_servers));
  }
  if (resolved.key.nnodes > 1) {
    throw ConfigError(
        "Distributed.ps.mode: assay starts parameter servers on one host; on several start every process with the "
        "variables of docs/guide/parameter-server.md");
  }
  for (Step& step : plan.steps) {
    if (step.kind != StepKind::Train) continue;
    step.ranks.num_servers = num_servers;
    step.ranks.nproc = resolved.key.nproc + num_servers;
    step.limits.max_restarts = max_restarts(resolved);
  }
}

int max_restarts(const ResolvedCase& resolved) {
  const Value* value = resolved.config.find("Distributed.max_restarts");
  return value && value->is_int() ? static_cast<int>(value->as_int()) : 0;
}

Plan train_plan(const ResolvedCase& resolved, const ChainLimits& limits, int node_rank) {
  Plan plan = new_plan(resolved, "train");
  add_train(plan, resolved, limits, node_rank);
  return plan;
}

Plan chain_plan(const ResolvedCase& resolved, const ChainLimits& limits) {
  Plan plan = new_plan(resolved, "demo");
  add_train(plan, resolved, limits, 0);
  add_evaluate_export_infer(plan, resolved, limits);
  add_verify(plan, resolved);
  return plan;
}

}  // namespace assay
