#include "frontends/parallel/matrix.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "layout/run_layout.h"

namespace assay {

namespace {

// What every run of the matrix has in common, below what the user sets.
//
// epsilon: Adam divides a gradient by its own size. Where the true gradient is 0, as for the bias of attention's keys,
// that makes rounding noise as large as any update; an epsilon far above the noise leaves noise small, and moments,
// corrections and their shards in use.
std::vector<std::string> common_settings(int64_t num_steps) {
  return {fmt::format("Engine.max_steps={}", num_steps),
          "Engine.num_train_epochs=1000000",
          "Engine.logging_freq=1",
          "Engine.eval_freq=-1",
          "Engine.stop_at_target=false",
          "Engine.early_stop=-1",
          "Engine.mix_precision.enable=false",
          "Engine.tensorboard=false",
          "Engine.save_load.save_steps=1",
          "Engine.save_load.save_epoch=-1",
          "Engine.save_load.keep_last=-1",
          "Engine.save_load.keep_best=null",
          "Data.Eval=null",
          "Data.Train.loader.num_workers=0",
          "Optimizer.epsilon=0.001",
          "Distributed.check_replicas=true"};
}

// Name, keys and reference of one training.
struct Run {
  std::string name;
  std::string precision;
  std::vector<Setting> settings;
  int num_processes = 1;
};

class MatrixMaker {
 public:
  explicit MatrixMaker(const MatrixRequest& request)
      : request_(request), model_(parallel_model(model_name())), case_name_(request.base.key.model) {
    if (request.precisions.empty()) throw UsageError("--precision: none is given");
    for (const std::string& precision : request.precisions) max_relative(precision);  // throws for a wrong one
    if (request.num_steps < 1) throw UsageError(fmt::format("--steps must be at least 1, found {}", request.num_steps));
    if (request.base.key.world_size() != 1) {
      throw UsageError("verify parallel chooses the processes itself: give the case without nodes and processes");
    }
    if (request.tiny && model_.tiny.empty()) {
      throw UsageError(fmt::format("model {} has no tiny size; make it small with --set", model_.name));
    }
  }

  MatrixPlan make() {
    MatrixPlan out{.plan = {}, .one_process = resolve({}, 1, request_.precisions.at(0))};
    global_batch_ = out.one_process.config.find("Global.global_batch_size")->as_int();
    plan_.title = fmt::format("verify parallel {}{} on {}", case_name_, request_.tiny ? " (tiny)" : "",
                              out.one_process.data.name);
    verify_.name = "verify";
    verify_.kind = StepKind::Verify;
    std::vector<ParallelStrategy> chosen;
    for (const std::string& name : request_.strategies) chosen.push_back(strategy_named(name));
    for (const std::string& precision : request_.precisions) {
      for (const ParallelStrategy& strategy : chosen.empty() ? strategies() : chosen) add(strategy, precision);
    }
    plan_.steps.push_back(std::move(verify_));
    plan_.validate();
    out.plan = std::move(plan_);
    return out;
  }

 private:
  std::string model_name() const {
    const ResolvedCase resolved = resolve_case(request_.base);
    if (!resolved.is_native()) {
      throw ConfigError(fmt::format("case {} is a command of its own, not a native case", resolved.key.model));
    }
    return resolved.config.find("Model.name")->as_string();
  }

  ResolvedCase resolve(const std::vector<Setting>& more, int num_processes, const std::string& precision) const {
    ResolveRequest request = request_.base;
    request.key.nproc = num_processes;
    request.sets.clear();
    const auto add = [&](const std::vector<std::string>& texts, const char* source) {
      for (const std::string& text : texts) request.sets.emplace_back(text, source);
    };
    add(common_settings(request_.num_steps), "verify parallel");
    add(model_.no_dropout, "verify parallel");
    if (request_.tiny) add(model_.tiny, "--tiny");
    request.sets.insert(request.sets.end(), request_.base.sets.begin(), request_.base.sets.end());
    request.sets.insert(request.sets.end(), more.begin(), more.end());
    request.sets.emplace_back("Engine.precision=" + precision, "--precision " + precision);
    return resolve_case(request);
  }

  Step train_step(const Run& run) const {
    Step step;
    step.name = fmt::format("{}-{}", run.name, run.precision);
    step.kind = StepKind::Train;
    const std::string folder = plan_.next_folder(step.name);
    step.command.argv = {"assay-worker", "train",
                         "--config",     folder + "/" + layout::kConfig,
                         "--output",     folder + "/" + layout::kOutput};
    // Threads that have next to nothing to do only wait for each other.
    if (request_.tiny) step.command.env = {{"ASSAY_THREADS", "1"}};
    step.files.inputs = {{layout::kConfig, resolve(run.settings, run.num_processes, run.precision).worker_json()}};
    step.files.outputs = {fmt::format("{}/model.safetensors", layout::kOutput)};
    step.ranks.nproc = run.num_processes;
    step.limits.time_limit_s = request_.time_limit_s;
    return step;
  }

  // The one-process run that a strategy is compared with; made when it is needed first.
  std::string baseline_for(const ParallelStrategy& strategy, const std::string& precision) {
    const int parts = model_.whole_batch_matters ? strategy.micro_batches : 1;
    ParallelStrategy alone;
    alone.name = parts == 1 ? "one-process" : fmt::format("one-process-in-{}", parts);
    alone.micro_batches = parts;
    const std::string name = fmt::format("{}-{}", alone.name, precision);
    for (const Step& step : plan_.steps) {
      if (step.name == name) return name;
    }
    plan_.steps.push_back(train_step({.name = alone.name,
                                      .precision = precision,
                                      .settings = settings_of(alone, global_batch_),
                                      .num_processes = 1}));
    if (!request_.keep) verify_.files.discard.push_back(plan_.folder(name) + "/" + layout::kCheckpoints);
    return name;
  }

  void add(const ParallelStrategy& strategy, const std::string& precision) {
    Json check = {{"name", fmt::format("{} in {} trains as one process does", strategy.name, precision)},
                  {"cell", {strategy.name, precision}}};
    if (const std::string reason = not_applicable(strategy, model_); !reason.empty()) {
      check["type"] = "not_applicable";
      check["reason"] = reason;
      verify_.checks.push_back(Check::parse(check));
      return;
    }
    const std::string baseline = baseline_for(strategy, precision);
    Step step = train_step({.name = strategy.name,
                            .precision = precision,
                            .settings = settings_of(strategy, global_batch_),
                            .num_processes = strategy.num_processes()});
    const std::string folder = plan_.next_folder(step.name);
    check["type"] = "same_training";
    check["measured"] = folder;
    check["baseline"] = plan_.folder(baseline);
    check["steps"] = request_.num_steps;
    check["max_relative"] = max_relative(precision);
    step.needs = {baseline};
    step.checks = {Check::parse(check)};
    verify_.checks.push_back(step.checks[0]);
    if (!request_.keep) {
      step.files.discard = {folder + "/" + layout::kCheckpoints};
      verify_.files.discard.push_back(step.files.discard[0]);
    }
    plan_.steps.push_back(std::move(step));
  }

  const MatrixRequest& request_;
  ParallelModel model_;
  std::string case_name_;
  int64_t global_batch_ = 0;
  Plan plan_;
  Step verify_;
};

}  // namespace

double max_relative(const std::string& precision) {
  if (precision == "float64") return 1e-10;
  if (precision == "float32") return 1e-5;
  throw UsageError(fmt::format("--precision {}: is none of float64 and float32", precision));
}

MatrixPlan matrix_plan(const MatrixRequest& request) { return MatrixMaker(request).make(); }

Json strategies_json() {
  Json out = Json::array();
  for (const ParallelStrategy& strategy : strategies()) {
    Json keys = Json::array();
    // A batch that divides by everything; what is said is the division, not the size.
    for (const Setting& setting : settings_of(strategy, 64)) {
      if (setting.text.rfind("Global.", 0) != 0) keys.push_back(setting.text);
    }
    out.push_back({{"name", strategy.name},
                   {"processes", strategy.num_processes()},
                   {"what", strategy.what},
                   {"micro_batches", strategy.micro_batches},
                   {"keys", keys}});
  }
  return out;
}

}  // namespace assay
