#include "engine/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace assay {

namespace {

// -1 is how the unified arguments write "no limit".
std::optional<int64_t> limit_of(Reader& section, const std::string& key) {
  const auto value = section.get_optional_int(key);
  if (!value || *value == -1) return std::nullopt;
  if (*value < 1) section.fail(key, "must be at least 1, or null for no limit");
  return value;
}

int64_t at_least_one(Reader& section, const std::string& key, int64_t fallback) {
  const int64_t value = section.get_int(key, fallback);
  if (value < 1) section.fail(key, "must be at least 1");
  return value;
}

void read_global(const WorkerConfig& config, EngineOptions& options) {
  Reader global = config.section("Global");
  options.seed = global.get_int("seed", 1024);
  options.local_batch_size = at_least_one(global, "local_batch_size", 1);
  const int64_t micro = at_least_one(global, "micro_batch_size", options.local_batch_size);
  if (options.local_batch_size % micro != 0) {
    global.fail("micro_batch_size", fmt::format("must divide local_batch_size {}", options.local_batch_size));
  }
  options.accumulate_steps = options.local_batch_size / micro;
  options.device = global.get_string("device", "cpu");
  options.plugin = global.get_optional_string("plugin");
  global.ignore("global_batch_size");
  global.finish();
}

LossScaler::Options read_scaling(Reader& mixed) {
  LossScaler::Options o;
  o.initial = mixed.get_double("scale_loss", o.initial);
  o.dynamic = mixed.get_bool("use_dynamic_loss_scaling", o.dynamic);
  o.growth = mixed.get_double("incr_ratio", o.growth);
  o.backoff = mixed.get_double("decr_ratio", o.backoff);
  o.growth_interval = at_least_one(mixed, "incr_every_n_steps", o.growth_interval);
  o.backoff_interval = at_least_one(mixed, "decr_every_n_nan_or_inf", o.backoff_interval);
  if (!(o.initial >= 1)) mixed.fail("scale_loss", "must be at least 1; 1 means that the loss is not scaled");
  if (!(o.growth > 1)) mixed.fail("incr_ratio", "must be above 1");
  if (!(o.backoff > 0 && o.backoff < 1)) mixed.fail("decr_ratio", "must be between 0 and 1");
  return o;
}

void read_precision(Reader& engine, PrecisionOptions& o) {
  const bool is_double = engine.get_choice("precision", {"float32", "float64"}, "float32") == "float64";
  o.dtype = is_double ? torch::kDouble : torch::kFloat;
  Reader mixed = engine.section("mix_precision");
  const bool enable = mixed.get_bool("enable", false);
  const bool half = mixed.get_choice("dtype", {"bfloat16", "float16"}, "bfloat16") == "float16";
  const bool low_weights = mixed.get_choice("level", {"O1", "O2"}, "O1") == "O2";
  const LossScaler::Options scaling = read_scaling(mixed);
  const std::vector<std::string> black_list = mixed.get_strings("custom_black_list");
  const std::vector<std::string> white_list = mixed.get_strings("custom_white_list");
  mixed.finish();
  if (!enable) return;
  if (is_double) mixed.fail("enable", "Engine.precision float64 is for exact comparisons: it does not mix");
  o.mixed = half ? torch::kHalf : torch::kBFloat16;
  o.low_weights = low_weights;
  o.black_list = black_list;
  o.white_list = white_list;
  // bfloat16 has the range of float32 and needs no scale.
  if (half && scaling.initial > 1) o.scaling = scaling;
  Precision check(o);  // refuses unknown operators before any data is read
}

std::optional<SpikeGuard::Options> read_spike(Reader& section) {
  SpikeGuard::Options spike;
  const bool enable = section.get_bool("enable", false);
  spike.window = at_least_one(section, "window", spike.window);
  spike.factor = section.get_double("factor", spike.factor);
  if (!(spike.factor > 1)) section.fail("factor", "must be above 1");
  section.finish();
  return enable ? std::optional(spike) : std::nullopt;
}

void read_profiler(const WorkerConfig& config, EngineOptions& options) {
  Reader section = config.section("Profiler");
  EngineOptions::ProfileWindow window;
  const bool enable = section.get_bool("enable", false);
  const std::vector<int64_t> steps = section.get_ints("scheduler", {window.first_step, window.end_step});
  if (steps.size() != 2 || steps[0] < 0 || steps[1] <= steps[0]) {
    section.fail("scheduler", "must be two steps, the first and the one after the last: [1, 5]");
  }
  window.first_step = steps[0];
  window.end_step = steps[1];
  window.folder = section.get_string("profiler_log", window.folder.string());
  section.finish();
  if (enable) options.profile = window;
}

void need_evaluations(const WorkerConfig& config, const Reader& section, const char* key, bool wanted) {
  if (wanted && !config.section("Data").has("Eval")) {
    section.fail(key, "needs evaluations, but there is no section Data.Eval");
  }
}

void read_engine(const WorkerConfig& config, EngineOptions& options) {
  Reader engine = config.section("Engine");
  options.run_mode = engine.get_choice("run_mode", {"step", "epoch"}, "step") == "step" ? EngineOptions::RunMode::Step
                                                                                        : EngineOptions::RunMode::Epoch;
  options.num_epochs = at_least_one(engine, "num_train_epochs", 1);
  options.max_steps = limit_of(engine, "max_steps");
  if (at_least_one(engine, "accumulate_steps", options.accumulate_steps) != options.accumulate_steps) {
    engine.fail("accumulate_steps",
                fmt::format("contradicts the batch sizes of Global, which make it {}", options.accumulate_steps));
  }
  options.logging_freq = at_least_one(engine, "logging_freq", 10);
  options.eval_freq = limit_of(engine, "eval_freq");
  options.eval_iters = limit_of(engine, "eval_iters");
  options.test_iters = limit_of(engine, "test_iters");
  options.stop_at_target = engine.get_bool("stop_at_target", false);
  need_evaluations(config, engine, "stop_at_target", options.stop_at_target);
  options.early_stop = limit_of(engine, "early_stop");
  need_evaluations(config, engine, "early_stop", options.early_stop.has_value());
  options.tensorboard = engine.get_bool("tensorboard", false);
  Reader spike = engine.section("spike");
  options.spike = read_spike(spike);
  read_precision(engine, options.precision);
  Reader save_load = engine.section("save_load");
  options.save_steps = limit_of(save_load, "save_steps");
  options.save_epoch = limit_of(save_load, "save_epoch");
  if (const auto folder = save_load.get_optional_string("ckpt_dir")) options.ckpt_dir = *folder;
  if (const auto weights = save_load.get_optional_string("pretrained")) options.pretrained = *weights;
  if (options.ckpt_dir && options.pretrained) {
    save_load.fail("pretrained", "cannot be set together with ckpt_dir, which brings its own weights");
  }
  options.keep_last = limit_of(save_load, "keep_last");
  options.keep_best = limit_of(save_load, "keep_best");
  need_evaluations(config, save_load, "keep_best", options.keep_best.has_value());
  save_load.ignore("output_dir");  // --output says where
  save_load.finish();
  engine.finish();
}

void read_optimizer(const WorkerConfig& config, EngineOptions& options) {
  Reader section = config.section("Optimizer");
  Optimizer::Options& o = options.optimizer;
  o.name = section.get_choice("name", Optimizer::names(), "SGD");
  o.weight_decay = section.get_double("weight_decay", o.weight_decay);
  o.momentum = section.get_double("momentum", o.momentum);
  o.nesterov = section.get_bool("nesterov", o.nesterov);
  o.beta1 = section.get_double("beta1", o.beta1);
  o.beta2 = section.get_double("beta2", o.beta2);
  o.epsilon = section.get_double("epsilon", o.epsilon);
  if (section.has("no_decay")) o.no_decay = section.get_strings("no_decay");
  if (section.has("ema")) {
    Reader ema = section.section("ema");
    o.ema_decay = ema.get_double("decay", 0.999);
    if (!(*o.ema_decay >= 0 && *o.ema_decay < 1)) ema.fail("decay", "must be at least 0 and below 1");
    ema.finish();
  } else {
    section.ignore("ema");
  }
  if (section.has("grad_clip")) {
    Reader clip = section.section("grad_clip");
    clip.get_choice("name", {"ClipGradByGlobalNorm"}, "ClipGradByGlobalNorm");
    o.clip_norm = clip.get_double("clip_norm", 1.0);
    clip.finish();
  } else {
    section.ignore("grad_clip");
  }
  Reader lr = section.section("lr");
  Schedule::Options& s = options.schedule;
  s.name = lr.get_choice("name", Schedule::names(), "constant");
  s.learning_rate = lr.get_double("learning_rate");
  s.warmup_steps = lr.get_int("warmup_steps", 0);
  options.warmup_rate = lr.get_double("warmup_rate", 0);
  s.min_lr = lr.get_double("min_lr", 0);
  s.decay_steps = limit_of(lr, "decay_steps").value_or(0);
  s.milestones = lr.get_ints("milestones");
  s.gamma = lr.get_double("gamma", s.gamma);
  s.power = lr.get_double("power", s.power);
  options.schedule_by_samples = lr.get_choice("unit", {"step", "samples"}, "step") == "samples";
  s.pct_start = lr.get_double("pct_start", s.pct_start);
  s.div_factor = lr.get_double("div_factor", s.div_factor);
  s.final_div_factor = lr.get_double("final_div_factor", s.final_div_factor);
  lr.finish();
  section.finish();
}

}  // namespace

EngineOptions read_engine_options(const WorkerConfig& config) {
  EngineOptions options;
  read_global(config, options);
  read_engine(config, options);
  read_optimizer(config, options);
  read_profiler(config, options);
  Reader distributed = config.section("Distributed");
  Reader sharding = distributed.section("sharding");
  options.num_replicas = distributed.get_int("dp_degree", 1) * sharding.get_int("sharding_degree", 1);
  make_schedule(options, 1000);  // refuses what makes no schedule before any data is read
  return options;
}

Schedule make_schedule(const EngineOptions& options, int64_t num_steps) {
  Schedule::Options schedule = options.schedule;
  const int64_t per_step = options.schedule_by_samples ? options.local_batch_size * options.num_replicas : 1;
  if (schedule.decay_steps == 0) schedule.decay_steps = std::max<int64_t>(num_steps * per_step, 1);
  if (schedule.warmup_steps == 0 && options.warmup_rate > 0) {
    schedule.warmup_steps = std::llround(options.warmup_rate * static_cast<double>(schedule.decay_steps));
  }
  return Schedule(schedule);
}

}  // namespace assay
