#include "plan/cases/native_chain.h"

#include <fmt/format.h>

#include "base/error.h"
#include "record/keys.h"

namespace assay {

namespace {

// Gates for an export that runs on the same libraries as the training: far inside the 0.1 % that vendors allow between
// two runtimes, far above what a different order of summation gives (about 1e-6).
constexpr double kMaxExportDiff2 = 1e-4;
constexpr double kMinExportTop1 = 0.999;
constexpr double kMaxAccuracyChange = 0.001;

Step worker_step(const Plan& plan, const ResolvedCase& resolved, const std::string& name, StepKind kind) {
  const std::string folder = fmt::format("steps/{}-{}", plan.steps.size() + 1, name);
  Step step;
  step.name = name;
  step.kind = kind;
  step.argv = {"assay-worker", name, "--config", folder + "/config.json", "--output", folder + "/output"};
  step.files = {{"config.json", resolved.worker_json()}};
  step.nproc = resolved.key.nproc;
  return step;
}

Plan new_plan(const ResolvedCase& resolved, const std::string& what) {
  return {.title = fmt::format("{} {} on {}", what, resolved.key.model, resolved.data.name),
          .case_key = resolved.key.text(),
          .steps = {}};
}

void add_train(Plan& plan, const ResolvedCase& resolved, const ChainLimits& limits) {
  Step train = worker_step(plan, resolved, "train", StepKind::Train);
  train.time_limit_s = limits.train_s;
  train.outputs = {"output/model.safetensors"};
  plan.steps.push_back(train);
}

void add_evaluate_export_infer(Plan& plan, const ResolvedCase& resolved, const ChainLimits& limits) {
  const std::string weights = plan.folder("train") + "/output/model.safetensors";
  Step evaluate = worker_step(plan, resolved, "evaluate", StepKind::Evaluate);
  evaluate.argv.insert(evaluate.argv.end(), {"--weights", weights});
  evaluate.needs = {"train"};
  evaluate.outputs = {"output/predictions.safetensors"};
  evaluate.nproc = 1;
  evaluate.time_limit_s = limits.other_s;
  plan.steps.push_back(evaluate);

  Step exported = worker_step(plan, resolved, "export", StepKind::Export);
  exported.argv.insert(exported.argv.end(), {"--weights", weights});
  exported.needs = {"train"};
  exported.outputs = {"output/model.pt"};
  exported.nproc = 1;
  exported.time_limit_s = limits.other_s;
  plan.steps.push_back(exported);

  Step infer = worker_step(plan, resolved, "infer", StepKind::Infer);
  infer.argv.insert(infer.argv.end(), {"--model", plan.folder("export") + "/output/model.pt"});
  infer.needs = {"export"};
  infer.outputs = {"output/predictions.safetensors"};
  infer.nproc = 1;
  infer.time_limit_s = limits.other_s;
  plan.steps.push_back(infer);
}

void add_verify(Plan& plan, const ResolvedCase& resolved) {
  const auto records = [&](const char* step) { return plan.folder(step) + "/records.jsonl"; };
  const auto predictions = [&](const char* step) { return plan.folder(step) + "/output/predictions.safetensors"; };
  Step verify;
  verify.name = "verify";
  verify.kind = StepKind::Verify;
  verify.needs = {"train", "evaluate", "infer"};
  verify.checks = {{{"type", "loss_falls"}, {"records", records("train")}},
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
  plan.steps.push_back(verify);
}

}  // namespace

void check_ready(const ResolvedCase& resolved) {
  if (!resolved.is_native()) {
    throw ConfigError(fmt::format("case {} is a command of its own, not a native case", resolved.key.model));
  }
  if (!resolved.data.path) return;
  const fs::path& folder = *resolved.data.path;
  const auto missing = [&](const std::string& what) {
    std::string help = "give its folder with --dataset_path";
    if (resolved.data.name == "fashion-mnist") help += ", or install it: sudo apt-get install dataset-fashion-mnist";
    throw DataError(fmt::format("data set {}: {}; {}", resolved.data.name, what, help));
  };
  if (!fs::is_directory(folder)) missing(fmt::format("no folder {}", folder.string()));
  for (const auto& [name, hash] : resolved.data.sha256) {
    if (!fs::exists(folder / name)) missing(fmt::format("no file {}", (folder / name).string()));
  }
}

Plan train_plan(const ResolvedCase& resolved, const ChainLimits& limits) {
  Plan plan = new_plan(resolved, "train");
  add_train(plan, resolved, limits);
  return plan;
}

Plan chain_plan(const ResolvedCase& resolved, const ChainLimits& limits) {
  Plan plan = new_plan(resolved, "demo");
  add_train(plan, resolved, limits);
  add_evaluate_export_infer(plan, resolved, limits);
  add_verify(plan, resolved);
  return plan;
}

}  // namespace assay
