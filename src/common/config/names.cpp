#include "config/names.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "config/schema.h"

namespace assay {

const std::vector<KeyName>& key_names() {
  static const std::vector<KeyName> kNames = {
      {"FleetX", "Engine.save_load.save_by_steps", {"Engine.save_load.save_steps"}, ""},
      {"FleetX", "Engine.save_load.save_by_step", {"Engine.save_load.save_steps"}, ""},
      {"FleetX",
       "Engine.mix_precision.use_pure_fp16",
       {"Engine.mix_precision.enable"},
       "true also means level O2 with float16"},
      {"FleetX", "Optimizer.lr.max_lr", {"Optimizer.lr.learning_rate"}, ""},
      {"FlagPerf", "data_dir", {"data.path"}, ""},
      {"FlagPerf", "train_data", {"Data.Train.dataset.input_dir"}, "relative to data.path"},
      {"FlagPerf", "eval_data", {"Data.Eval.dataset.input_dir"}, "relative to data.path"},
      {"FlagPerf", "init_checkpoint", {"Engine.save_load.pretrained"}, "initial weights, relative to data.path"},
      {"FlagPerf", "target", {"target.value"}, "when it is a number"},
      {"FlagPerf", "target_acc", {"target.value"}, ""},
      {"FlagPerf", "seed", {"Global.seed"}, ""},
      {"FlagPerf", "train_batch_size", {"Global.local_batch_size"}, "per process"},
      {"FlagPerf", "eval_batch_size", {"Data.Eval.loader.batch_size"}, "per process"},
      {"FlagPerf", "gradient_accumulation_steps", {"Engine.accumulate_steps"}, ""},
      {"FlagPerf", "max_epoch", {"Engine.num_train_epochs"}, ""},
      {"FlagPerf", "max_steps", {"Engine.max_steps"}, ""},
      {"FlagPerf", "log_freq", {"Engine.logging_freq"}, ""},
      {"FlagPerf", "lr", {"Optimizer.lr.learning_rate"}, ""},
      {"FlagPerf", "learning_rate", {"Optimizer.lr.learning_rate"}, ""},
      {"FlagPerf", "warmup_steps", {"Optimizer.lr.warmup_steps"}, ""},
      {"FlagPerf", "weight_decay", {"Optimizer.weight_decay"}, ""},
      {"FlagPerf", "momentum", {"Optimizer.momentum"}, ""},
      {"FlagPerf", "num_workers", {"Data.Train.loader.num_workers", "Data.Eval.loader.num_workers"}, ""},
      {"FlagPerf", "amp", {"Engine.mix_precision.enable"}, ""},
      {"FlagPerf", "fp16", {"Engine.mix_precision.enable"}, ""},
  };
  return kNames;
}

const std::vector<ValueName>& value_names() {
  static const std::vector<ValueName> kNames = {
      {"Optimizer.lr.name", "CosineAnnealingWithWarmupDecay", "cosine"},
      {"Optimizer.lr.name", "LinearDecayWithWarmup", "linear"},
      {"Optimizer.lr.name", "MultiStepDecay", "multistep"},
      {"Optimizer.lr.name", "PolynomialDecay", "polynomial"},
      {"Optimizer.name", "FusedAdamW", "AdamW"},
      {"Optimizer.name", "Lamb", "LAMB"},
  };
  return kNames;
}

void lift_config(Value& layer) {
  const Value* config = layer.child("config");
  if (!config) return;
  if (!config->is_map() && !config->is_null()) {
    throw ConfigError(
        fmt::format("{}: config must be a map of sections, found {}", config->origin().text(), config->text()));
  }
  const Value lifted = *config;
  layer.erase("config");
  if (lifted.is_null()) return;
  for (const Value::Entry& entry : lifted.entries()) {
    if (is_head_key(entry.key)) {
      throw ConfigError(fmt::format("{}: '{}' belongs at the top of the file, not into config",
                                    entry.value.origin().text(), entry.key));
    }
    if (const Value* other = layer.child(entry.key)) {
      throw ConfigError(fmt::format("{}: config.{} stands also at the top, in line {}; keep one of them",
                                    entry.value.origin().text(), entry.key, other->origin().line));
    }
    layer.entries().push_back(entry);
    if (lifted.standalone()) layer.entries().back().value.set_standalone(true);
  }
}

namespace {

// FleetX's older spelling of three keys at once.
void apply_pure_fp16(Value& layer) {
  constexpr std::string_view kPath = "Engine.mix_precision.";
  Value* section = layer.find("Engine.mix_precision");
  const Value* old = section ? section->child("use_pure_fp16") : nullptr;
  if (!old || !old->is_bool()) return;
  if (old->as_bool()) {
    const Origin origin = old->origin();
    if (!section->child("level")) section->set("level", Value::string("O2", origin));
    if (!section->child("dtype")) section->set("dtype", Value::string("float16", origin));
  }
  // With `enable` beside it, that decides.
  if (layer.find(std::string(kPath) + "enable")) layer.find("Engine.mix_precision")->erase("use_pure_fp16");
}

void erase_path(Value& layer, const std::string& path) {
  const size_t dot = path.rfind('.');
  Value* parent = dot == std::string::npos ? &layer : layer.find(path.substr(0, dot));
  parent->erase(dot == std::string::npos ? path : path.substr(dot + 1));
}

}  // namespace

void apply_names(Value& layer) {
  apply_pure_fp16(layer);
  for (const KeyName& key : key_names()) {
    const Value* found = layer.find(key.name);
    if (!found) continue;
    if (key.name == "target" && !found->is_number()) continue;
    const Value value = *found;
    erase_path(layer, key.name);
    for (const std::string& path : key.paths) {
      if (const Value* ours = layer.find(path)) {
        throw ConfigError(fmt::format("{}: {} is another name of {}, which is set in {}; keep one of them",
                                      value.origin().text(), key.name, path, ours->origin().text()));
      }
      layer.set_path(path, value);
    }
  }
  for (const ValueName& name : value_names()) {
    Value* found = layer.find(name.path);
    if (found && found->is_string() && found->as_string() == name.name) {
      *found = Value::string(name.ours, found->origin());
    }
  }
}

}  // namespace assay
