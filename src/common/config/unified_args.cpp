#include "config/unified_args.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace assay {

const std::vector<UnifiedArgument>& unified_arguments() {
  using Kind = UnifiedArgument::Kind;
  constexpr auto kNone = std::nullopt;
  static const std::vector<UnifiedArgument> kArguments = {
      {"model_name", {}, Kind::Text, kNone, "case key", "Model name; must match the case."},
      {"epoch", {}, Kind::Int, "1", "Engine.num_train_epochs", "Passes over the training data."},
      {"step", {}, Kind::Int, "-1", "Engine.max_steps", "Stop after N steps (a short run); -1: no limit."},
      {"eval_step", {}, Kind::Int, "100", "Engine.eval_freq", "Steps between two evaluations; sets run_mode to step."},
      {"batch_size", {"bs"}, Kind::Int, kNone, "Global.local_batch_size", "Samples per step and process."},
      {"dataset_path", {}, Kind::Text, kNone, "data.path", "Data set folder."},
      {"nproc_per_node", {}, Kind::Int, "1", "case key", "Processes per node."},
      {"nnode", {"nnodes"}, Kind::Int, "1", "case key", "Number of nodes."},
      {"node_rank", {}, Kind::Int, "0", "environment", "Rank of this node, starting at 0."},
      {"master_addr", {}, Kind::Text, "127.0.0.1", "environment", "Address of node 0."},
      {"master_port", {}, Kind::Int, "29500", "environment", "Port of node 0."},
      {"lr", {"learning-rate"}, Kind::Number, kNone, "Optimizer.lr.learning_rate", "Learning rate."},
      {"num_workers", {}, Kind::Int, "2", "Data.Train.loader.num_workers", "Threads that prepare batches."},
      {"device", {}, Kind::Text, "cpu", "Global.device", "cpu, cuda, sdaa, ..."},
      {"profiler", {}, Kind::Bool, "false", "Profiler.enable", "Profile a few steps."},
      {"profiler_path", {}, Kind::Text, kNone, "Profiler.profiler_log", "Output folder of the profile."},
      {"autocast", {}, Kind::Bool, "false", "Engine.mix_precision.enable", "Mixed precision."},
      {"grad_scale",
       {},
       Kind::Bool,
       "false",
       "Engine.mix_precision.scale_loss",
       "Scale the loss in mixed precision (no = off)."},
      {"early_stop",
       {},
       Kind::Int,
       "-1",
       "Engine.early_stop",
       "Stop after N evaluations without an improvement; -1: never."},
      {"warm_up",
       {},
       Kind::Number,
       kNone,
       "Optimizer.lr.warmup_rate",
       "Warm-up: fraction of steps if below 1, number of steps otherwise."},
      {"max_seq_length", {}, Kind::Int, kNone, "Model.max_seq_length", "Longest sequence, for models that have one."},
      {"checkpoint_path", {}, Kind::Text, kNone, "Engine.save_load.ckpt_dir", "Checkpoint to resume from."},
      {"pretrained_path", {}, Kind::Text, kNone, "Engine.save_load.pretrained", "Initial weights."},
      {"precision_align", {}, Kind::Bool, "false", "alignment", "Compare with a reference run; one process only."},
      {"precision_align_cuda_path", {}, Kind::Text, kNone, "alignment", "Results of the reference run."},
      {"precision_align_log_path", {}, Kind::Text, kNone, "alignment", "Output folder of the comparison."},
  };
  return kArguments;
}

namespace {

const UnifiedArgument* find_argument(const std::string& name) {
  for (const UnifiedArgument& argument : unified_arguments()) {
    const bool alias = std::find(argument.aliases.begin(), argument.aliases.end(), name) != argument.aliases.end();
    if (argument.name == name || alias) return &argument;
  }
  return nullptr;
}

const UnifiedArgument& argument_named(const std::string& name) {
  if (const UnifiedArgument* found = find_argument(name)) return *found;
  std::vector<std::string> names;
  for (const UnifiedArgument& argument : unified_arguments()) names.push_back(argument.name);
  throw UsageError(fmt::format("--{} is not a run argument{}", name, did_you_mean(name, names)));
}

// As YAML, so that a path or a name stays text whatever it looks like.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

constexpr int kMaxPort = 65535;

}  // namespace

void UnifiedArgs::set(const std::string& name, const std::string& text) {
  const UnifiedArgument& argument = argument_named(name);
  const auto refuse = [&](const char* wanted) {
    throw UsageError(fmt::format("--{} must be {}, found '{}'", argument.name, wanted, text));
  };
  if (text.empty()) refuse("given a value");
  std::string value = text;
  switch (argument.kind) {
    case UnifiedArgument::Kind::Text: break;
    case UnifiedArgument::Kind::Int: {
      const auto number = parse_int(text);
      // Counts of steps, processes and workers; all fit well.
      if (!number || std::llabs(*number) > 1'000'000'000) refuse("an integer");
      value = std::to_string(*number);
      break;
    }
    case UnifiedArgument::Kind::Number: {
      const auto number = parse_double(text);
      if (!number || !std::isfinite(*number)) refuse("a number");
      value = python_float(*number);
      break;
    }
    case UnifiedArgument::Kind::Bool: {
      const auto flag = parse_bool(text);
      if (!flag) refuse("yes/true/t/y/1 or no/false/f/n/0");
      value = *flag ? "true" : "false";
      break;
    }
  }
  values_[argument.name] = value;
}

std::optional<std::string> UnifiedArgs::get(const std::string& name) const {
  const auto found = values_.find(name);
  return found != values_.end() ? found->second : argument_named(name).fallback;
}

int UnifiedArgs::get_int(const std::string& name) const {
  const auto text = get(name);
  ASSAY_CHECK(text.has_value(), name);
  return static_cast<int>(parse_int(*text).value());
}

bool UnifiedArgs::get_bool(const std::string& name) const { return get(name) == "true"; }

void UnifiedArgs::check_node_rank(int nnodes) const {
  if (get_int("node_rank") >= 0 && get_int("node_rank") < nnodes) return;
  throw UsageError(fmt::format("--node_rank must be from 0 to {}, one less than the nodes, found {}", nnodes - 1,
                               *get("node_rank")));
}

std::vector<std::string> UnifiedArgs::apply_rules() {
  std::vector<std::string> warnings;
  for (const char* name : {"epoch", "batch_size", "nproc_per_node", "nnode", "eval_step"}) {
    if (given(name) && get_int(name) < 1)
      throw UsageError(fmt::format("--{} must be at least 1, found {}", name, *get(name)));
  }
  if (given("step") && get_int("step") < 1 && get_int("step") != -1) {
    throw UsageError(fmt::format("--step must be at least 1, or -1 for no limit, found {}", *get("step")));
  }
  if (get_int("step") > 0 && get_int("epoch") > 1) {
    warnings.push_back(fmt::format("--step {} ends the run in its first epoch: --epoch {} is taken as 1", *get("step"),
                                   *get("epoch")));
    values_["epoch"] = "1";
  }
  // Without --nnode the case key may have more nodes.
  if (given("nnode") || get_int("node_rank") < 0) check_node_rank(get_int("nnode"));
  if (get_int("master_port") < 1 || get_int("master_port") > kMaxPort) {
    throw UsageError(fmt::format("--master_port must be from 1 to {}, found {}", kMaxPort, *get("master_port")));
  }
  if (get_bool("precision_align") && (get_int("nnode") != 1 || get_int("nproc_per_node") != 1)) {
    throw UsageError(fmt::format("--precision_align needs one process, found --nnode {} --nproc_per_node {}",
                                 *get("nnode"), *get("nproc_per_node")));
  }
  return warnings;
}

std::vector<Setting> UnifiedArgs::to_sets() const {
  std::vector<Setting> sets;
  for (const UnifiedArgument& argument : unified_arguments()) {
    // Keys have a dot; the rest of the table goes elsewhere.
    if (!given(argument.name) || argument.goes_to.find('.') == std::string::npos) continue;
    const std::string value = *get(argument.name);
    const std::string source = fmt::format("--{} {}", argument.name, value);
    const auto add = [&](const std::string& path, const std::string& yaml) {
      sets.emplace_back(path + "=" + yaml, source);
    };
    if (argument.name == "grad_scale") {
      if (value == "false") add(argument.goes_to, "1.0");
    } else if (argument.name == "warm_up" && parse_double(value).value() >= 1) {
      add("Optimizer.lr.warmup_steps", std::to_string(std::llround(parse_double(value).value())));
    } else {
      add(argument.goes_to, argument.kind == UnifiedArgument::Kind::Text ? quoted(value) : value);
    }
    if (argument.name == "eval_step") add("Engine.run_mode", "step");
  }
  return sets;
}

CaseKey UnifiedArgs::apply_to(CaseKey key) const {
  const auto model = get("model_name");
  if (model && !key.model.empty() && *model != key.model) {
    throw UsageError(fmt::format("--model_name {} is not the model of the case '{}'", *model, key.text()));
  }
  if (model && key.model.empty()) key.model = CaseKey::parse(*model).model;
  if (given("nnode")) key.nnodes = get_int("nnode");
  if (given("nproc_per_node")) key.nproc = get_int("nproc_per_node");
  // Through the parser: one place knows the limits.
  key = CaseKey::parse(key.text());
  check_node_rank(key.nnodes);
  return key;
}

std::vector<std::pair<std::string, std::string>> UnifiedArgs::environment(const CaseKey& key) const {
  return {{"MASTER_ADDR", *get("master_addr")},          {"MASTER_PORT", *get("master_port")},
          {"NNODES", std::to_string(key.nnodes)},        {"NODE_RANK", *get("node_rank")},
          {"NPROC_PER_NODE", std::to_string(key.nproc)}, {"WORLD_SIZE", std::to_string(key.world_size())}};
}

std::vector<std::string> UnifiedArgs::arguments() const {
  std::vector<std::string> argv;
  for (const UnifiedArgument& argument : unified_arguments()) {
    if (!given(argument.name)) continue;
    argv.push_back("--" + argument.name);
    argv.push_back(*get(argument.name));
  }
  return argv;
}

std::string render_command(const std::vector<std::pair<std::string, std::string>>& environment,
                           const std::vector<std::string>& argv) {
  std::string out = "environment\n";
  for (const auto& [name, value] : environment) out += fmt::format("  {}={}\n", name, shell_quote(value));
  out += "arguments\n";
  for (size_t i = 0; i < argv.size(); ++i) {
    out += "  " + shell_quote(argv[i]);
    const bool has_value = argv[i].starts_with("--") && i + 1 < argv.size() && !argv[i + 1].starts_with("--");
    if (has_value) out += " " + shell_quote(argv[++i]);
    out += "\n";
  }
  return out;
}

}  // namespace assay
