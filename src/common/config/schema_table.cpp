// The table of keys. Names are those that FleetX's users know; docs/reference/configuration.md is checked against this
// table.
#include "config/schema.h"

namespace assay {

namespace {

using Keys = std::vector<KeySpec>;
using Sections = std::vector<SectionSpec>;

// Short names for the rows below. Each takes the path, then the meaning.
KeySpec boolean(std::string path, bool fallback, std::string doc) {
  return {.path = std::move(path), .type = KeyType::Bool, .doc = std::move(doc), .fallback = fallback};
}
KeySpec text(std::string path, Json fallback, std::string doc) {
  const bool nullable = fallback.is_null();
  return {.path = std::move(path), .doc = std::move(doc), .fallback = std::move(fallback), .nullable = nullable};
}
KeySpec choice(std::string path, std::vector<std::string> choices, std::string doc) {
  return {.path = std::move(path), .doc = std::move(doc), .fallback = choices[0], .choices = std::move(choices)};
}
KeySpec count(std::string path, Json fallback, double min, std::string doc) {
  const bool nullable = fallback.is_null();
  return {.path = std::move(path),
          .type = KeyType::Int,
          .doc = std::move(doc),
          .fallback = std::move(fallback),
          .nullable = nullable,
          .min = min};
}
// A number of steps, epochs or batches that may be unlimited: null, or -1 as the unified arguments write it.
KeySpec limit(std::string path, Json fallback, std::string doc) {
  KeySpec key = count(std::move(path), std::move(fallback), 1, std::move(doc));
  key.nullable = true;
  key.no_limit = true;
  return key;
}
KeySpec number(std::string path, Json fallback, double min, std::string doc) {
  const bool nullable = fallback.is_null();
  return {.path = std::move(path),
          .type = KeyType::Double,
          .doc = std::move(doc),
          .fallback = std::move(fallback),
          .nullable = nullable,
          .min = min};
}
KeySpec positive(std::string path, Json fallback, std::string doc) {
  KeySpec key = number(std::move(path), std::move(fallback), 0, std::move(doc));
  key.above_min = true;
  return key;
}
// In [0, 1).
KeySpec fraction(std::string path, Json fallback, std::string doc) {
  KeySpec key = number(std::move(path), std::move(fallback), 0, std::move(doc));
  key.max = 1;
  key.below_max = true;
  return key;
}
KeySpec list(std::string path, KeyType type, Json fallback, std::string doc) {
  return {.path = std::move(path), .type = type, .doc = std::move(doc), .fallback = std::move(fallback)};
}
KeySpec required(KeySpec key) {
  key.fallback.reset();
  key.nullable = false;
  key.required = true;
  return key;
}
KeySpec path_of(KeySpec key) {
  key.is_path = true;
  return key;
}

KeySpec location(KeySpec key) {
  key.is_location = true;
  return key;
}

void add_head(Sections& sections, Keys& keys) {
  sections.push_back({.path = "data", .doc = "The data set, by content."});
  sections.push_back({.path = "data.sha256", .doc = "File name to SHA-256 of the file.", .open = true});
  sections.push_back({.path = "target", .doc = "What a run has to reach; reaching it sets `converged`."});
  const auto add = [&](KeySpec key) { keys.push_back(std::move(key)); };
  add(required(text("model", "", "Name of the case; equals its folder's name.")));
  add(text("framework", "libtorch", "libtorch: a native case; anything else: `entry` is started."));
  add(text("task", "", "What the model does."));
  add(text("source", "", "Origin of the model (URL or paper)."));
  add(text("licence", "", "SPDX name of the licence of the model's code."));
  add(count("parameters", nullptr, 1, "Number of parameters; shown by `assay cases`."));
  add(list("entry", KeyType::StringList, Json::array(), "Command of a case that is not native, as an argument list."));
  add(text("data.name", "", "Name of the data set."));
  add(text("data.layout", "", "How its files are arranged."));
  add(path_of(location(text("data.path", nullptr,
                            "Folder of the data set; null: where `assay data prepare` puts it. FlagPerf: data_dir."))));
  add(required(text("target.metric", "", "Name of the metric.")));
  add(required(number("target.value", 0, -1e300, "Its value.")));
  keys.back().min.reset();
  add(choice("target.goal", {"maximize", "minimize"}, "Whether more or less is better."));
  add(list("mutable", KeyType::StringList, Json::array(), "Keys and sections that vendor files and plans may change."));
}

void add_global(Sections& sections, Keys& keys) {
  sections.push_back({.path = "Global", .doc = "Device, seed and batch sizes."});
  const auto add = [&](KeySpec key) { keys.push_back(std::move(key)); };
  add(text("Global.device", "cpu", "Device the case runs on: cpu, cuda, or the name of a vendor's device."));
  add(location(text("Global.plugin", nullptr,
                    "Vendor's adapter: a name, or a library relative to vendors/<vendor>; see add-a-vendor.md.")));
  add(count("Global.seed", 1024, 0, "Seed of all random numbers."));
  add(count("Global.global_batch_size", nullptr, 1, "Samples per step over all processes (derived if unset)."));
  add(count("Global.local_batch_size", nullptr, 1, "Samples per step and data-parallel process (derived if unset)."));
  add(count("Global.micro_batch_size", nullptr, 1, "Samples per forward pass (derived if unset)."));
}

void add_engine(Sections& sections, Keys& keys) {
  sections.push_back({.path = "Engine", .doc = "The training loop."});
  sections.push_back({.path = "Engine.mix_precision", .doc = "Automatic mixed precision."});
  sections.push_back({.path = "Engine.save_load", .doc = "Checkpoints."});
  sections.push_back({.path = "Engine.spike", .doc = "Stopping when the loss jumps."});
  const auto add = [&](KeySpec key) { keys.push_back(std::move(key)); };
  add(choice("Engine.run_mode", {"step", "epoch"}, "Unit of eval_freq: steps or epochs."));
  add(count("Engine.num_train_epochs", 1, 1, "Passes over the training data, unless max_steps ends training earlier."));
  add(limit("Engine.max_steps", nullptr, "Optimizer steps after which training ends."));
  add(count("Engine.accumulate_steps", nullptr, 1, "Micro-batches per optimizer step (derived if unset)."));
  add(count("Engine.logging_freq", 10, 1, "Steps between two log lines."));
  add(limit("Engine.eval_freq", 1, "Steps or epochs (see run_mode) between two evaluations; null: only at the end."));
  add(limit("Engine.eval_iters", nullptr, "Batches of an evaluation; null: all."));
  add(limit("Engine.test_iters", nullptr, "Batches of a test; null: all."));
  add(boolean("Engine.stop_at_target", false, "Stop training as soon as an evaluation reaches the target."));
  add(limit("Engine.early_stop", nullptr, "Stop after this many evaluations in a row without an improvement."));
  add(choice("Engine.precision", {"float32", "float64"}, "Type of weights and inputs; float64 for proofs."));
  add(boolean("Engine.tensorboard", false, "Write TensorBoard event files too, in the folder tensorboard."));
  add(boolean("Engine.spike.enable", false, "Stop before an update whose loss is a spike."));
  add(count("Engine.spike.window", 32, 1, "Steps whose median loss a loss is compared with."));
  add(number("Engine.spike.factor", 3.0, 1, "A loss above factor times the median is a spike."));
  keys.back().above_min = true;
  add(boolean("Engine.mix_precision.enable", false, "Compute in `dtype` where that is safe."));
  add(choice("Engine.mix_precision.dtype", {"bfloat16", "float16"},
             "Type of the lower precision; on the processor float16 is emulated."));
  add(choice("Engine.mix_precision.level", {"O1", "O2"}, "O1: by operator; O2: parameters too."));
  add(number("Engine.mix_precision.scale_loss", 32768.0, 1, "First loss scale with float16; 1: no scaling."));
  add(boolean("Engine.mix_precision.use_dynamic_loss_scaling", true, "The loss scale grows and falls by itself."));
  add(number("Engine.mix_precision.incr_ratio", 2.0, 1, "Its growth after incr_every_n_steps steps without overflow."));
  keys.back().above_min = true;
  add(positive("Engine.mix_precision.decr_ratio", 0.5, "Its fall after decr_every_n_nan_or_inf overflows in a row."));
  keys.back().max = 1;
  keys.back().below_max = true;
  add(count("Engine.mix_precision.incr_every_n_steps", 1000, 1, "Steps without overflow before it grows."));
  add(count("Engine.mix_precision.decr_every_n_nan_or_inf", 1, 1, "Overflows in a row before it falls."));
  add(list("Engine.mix_precision.custom_black_list", KeyType::StringList, Json::array(), "Operators kept in float32."));
  add(list("Engine.mix_precision.custom_white_list", KeyType::StringList, Json::array(),
           "Operators always in the lower precision."));
  add(limit("Engine.save_load.save_steps", nullptr, "Steps between two checkpoints. FleetX also: save_by_steps."));
  add(limit("Engine.save_load.save_epoch", 1, "Epochs between two checkpoints."));
  add(location(text("Engine.save_load.output_dir", "./output", "Folder of checkpoints; a run folder replaces it.")));
  add(path_of(
      text("Engine.save_load.ckpt_dir", nullptr, "Checkpoint to continue from: weights, optimizer, position.")));
  add(path_of(text("Engine.save_load.pretrained", nullptr,
                   "Weights to start from, and nothing else: a safetensors file or a checkpoint.")));
  add(limit("Engine.save_load.keep_last", nullptr, "Number of newest checkpoints to keep; null: all."));
  add(count("Engine.save_load.keep_best", nullptr, 1,
            "Checkpoints of the best evaluations, saved and kept besides; null: none."));
}

void add_data(Sections& sections, Keys& keys) {
  sections.push_back({.path = "Data", .doc = "Training, evaluation and test data."});
  const auto add = [&](KeySpec key) { keys.push_back(std::move(key)); };
  for (const std::string part : {"Train", "Eval", "Test"}) {
    const std::string path = "Data." + part;
    const bool train = part == "Train";
    sections.push_back({.path = path,
                        .doc = train            ? "Training data."
                               : part == "Eval" ? "Data of evaluations."
                                                : "Data of tests.",
                        .optional = !train,
                        .nullable = !train});
    sections.push_back({.path = path + ".dataset", .doc = "The samples; further keys by data set.", .open = true});
    sections.push_back({.path = path + ".sampler", .doc = "Their order."});
    sections.push_back({.path = path + ".loader", .doc = "How they are read."});
    add(required(text(path + ".dataset.name", "", "Kind of data set, such as idx_images; data.md has them all.")));
    add(location(text(path + ".dataset.input_dir", nullptr, "Its folder, relative to data.path; derived from that.")));
    add(text(path + ".dataset.split", train ? "train" : "test", "Part of the data set."));
    add(limit(path + ".dataset.limit", nullptr, "Use only the first N samples."));
    add(boolean(path + ".sampler.shuffle", train, "Shuffle every epoch, reproducibly from the seed."));
    add(boolean(path + ".sampler.drop_last", train, "Drop the last batch if it is incomplete."));
    add(count(path + ".loader.num_workers", 1, 0, "Threads that prepare batches; 0: the training thread does it."));
    add(count(path + ".loader.prefetch", 4, 1, "Batches to prepare in advance."));
    if (!train) {
      add(count(path + ".loader.batch_size", nullptr, 1, "Samples per batch; derived from Global.local_batch_size."));
    }
  }
}

void add_optimizer(Sections& sections, Keys& keys) {
  sections.push_back({.path = "Optimizer", .doc = "The update rule."});
  sections.push_back({.path = "Optimizer.lr", .doc = "The learning rate over time."});
  sections.push_back(
      {.path = "Optimizer.grad_clip", .doc = "Limit on gradients; null: none.", .optional = true, .nullable = true});
  sections.push_back({.path = "Optimizer.ema",
                      .doc = "Moving average of the weights, for evaluations and the final weights; null: none.",
                      .optional = true,
                      .nullable = true});
  const auto add = [&](KeySpec key) { keys.push_back(std::move(key)); };
  add(required(choice("Optimizer.name", {"SGD", "Momentum", "Adam", "AdamW", "LAMB", "Adagrad"}, "The rule.")));
  add(number("Optimizer.weight_decay", 0.0, 0, "Decay of weights; decoupled with AdamW and LAMB, L2 otherwise."));
  add(list("Optimizer.no_decay", KeyType::StringList, nullptr,
           "Parts of names that are not decayed; null: one-dimensional ones with AdamW and LAMB, else none."));
  keys.back().nullable = true;
  add(fraction("Optimizer.momentum", 0.9, "Of Momentum."));
  add(boolean("Optimizer.nesterov", false, "Nesterov's variant of Momentum."));
  add(fraction("Optimizer.beta1", 0.9, "Of Adam, AdamW and LAMB."));
  add(fraction("Optimizer.beta2", 0.999, "Of Adam, AdamW and LAMB."));
  add(positive("Optimizer.epsilon", 1e-8, "Of Adam, AdamW, LAMB and Adagrad."));
  add(fraction("Optimizer.ema.decay", 0.999, "Decay of the moving average per update."));
  KeySpec schedule = required(choice("Optimizer.lr.name", {"constant"}, "The schedule."));
  schedule.choices.clear();
  for (const ScheduleSpec& spec : schedules()) schedule.choices.push_back(spec.name);
  add(std::move(schedule));
  add(required(positive("Optimizer.lr.learning_rate", 0, "Peak learning rate. FleetX also: max_lr.")));
  add(choice("Optimizer.lr.unit", {"step", "samples"}, "What warmup_steps, decay_steps and milestones count."));
  add(count("Optimizer.lr.warmup_steps", 0, 0, "Steps of linear warm-up from 0; not for one_cycle."));
  add(number("Optimizer.lr.warmup_rate", nullptr, 0, "The same as a fraction of decay_steps, max_steps or all steps."));
  keys.back().max = 1;
  add(number("Optimizer.lr.min_lr", 0.0, 0, "Final learning rate of cosine, linear and polynomial."));
  add(limit("Optimizer.lr.decay_steps", nullptr, "Steps until the final learning rate; null: all steps."));
  add(list("Optimizer.lr.milestones", KeyType::IntList, Json::array(),
           "Steps at which multistep multiplies by gamma."));
  keys.back().min = 1;
  add(positive("Optimizer.lr.gamma", 0.1, "Factor of multistep."));
  add(positive("Optimizer.lr.power", 1.0, "Exponent of polynomial."));
  add(fraction("Optimizer.lr.pct_start", 0.3, "Fraction of the steps in which one_cycle increases the rate."));
  add(positive("Optimizer.lr.div_factor", 25.0, "First rate of one_cycle: learning_rate / div_factor."));
  add(positive("Optimizer.lr.final_div_factor", 1e4, "Last rate of one_cycle: first rate / final_div_factor."));
  add(choice("Optimizer.grad_clip.name", {"ClipGradByGlobalNorm"}, "How gradients are limited."));
  add(positive("Optimizer.grad_clip.clip_norm", 1.0, "Maximum global norm of the gradients."));
}

void add_distributed(Sections& sections, Keys& keys) {
  sections.push_back({.path = "Distributed", .doc = "How processes share the work."});
  sections.push_back({.path = "Distributed.sharding", .doc = "Sharded optimizer state, gradients, parameters."});
  sections.push_back({.path = "Distributed.comm", .doc = "How processes talk to each other."});
  sections.push_back({.path = "Distributed.ps", .doc = "Parameter servers for sparse models."});
  const auto add = [&](KeySpec key) { keys.push_back(std::move(key)); };
  add(count("Distributed.dp_degree", nullptr, 1, "Data-parallel processes (derived if unset)."));
  add(count("Distributed.mp_degree", 1, 1, "Tensor-parallel processes."));
  add(count("Distributed.pp_degree", 1, 1, "Pipeline stages."));
  add(count("Distributed.sharding.sharding_degree", 1, 1, "Processes over which the state is sharded."));
  add(count("Distributed.sharding.sharding_stage", 1, 1, "1: optimizer state, 2: and gradients, 3: and parameters."));
  keys.back().max = 3;
  add(boolean("Distributed.sharding.sharding_offload", false, "Keep the state in host memory."));
  add(boolean("Distributed.sharding.reduce_overlap", false, "Reduce gradients during the backward pass."));
  add(boolean("Distributed.sharding.broadcast_overlap", false, "Send parameters during the forward pass."));
  add(boolean("Distributed.sequence_parallel", false, "Split sequences between tensor-parallel layers."));
  add(count("Distributed.virtual_pp_degree", 1, 1,
            "Model chunks per pipeline stage; above 1 the schedule is interleaved."));
  add(choice("Distributed.pp_segments", {"parameters", "layers", "time"},
             "What is balanced over the pipeline stages; `time` is measured first."));
  add(positive("Distributed.bucket_mb", 16.0, "Size of a gradient bucket, in megabytes."));
  add(boolean("Distributed.find_unused_parameters", false, "Allow parameters that are not used in every step."));
  add(boolean("Distributed.check_replicas", false, "Compare the replicas of all weights after every step."));
  add(count("Distributed.max_restarts", 3, 0, "Restarts from the last checkpoint after a process was lost."));
  add(choice("Distributed.comm.transport", {"auto", "shared_memory", "gloo"}, "How data goes between processes."));
  add(positive("Distributed.comm.time_limit_s", 30.0, "Seconds after which a process that does not answer is lost."));
  add(positive("Distributed.comm.join_limit_s", 30.0, "Seconds until all processes must have found each other."));
  add(text("Distributed.comm.interface", nullptr, "Network interface between hosts; null: the one to the master."));
  add(choice("Distributed.ps.mode", {"none", "sync", "async", "geo"},
             "How trainers synchronise with parameter servers."));
  add(count("Distributed.ps.geo_steps", 10, 1, "Steps between two exchanges, for geo."));
}

void add_tools(Sections& sections, Keys& keys) {
  sections.push_back({.path = "Profiler", .doc = "Operator profile of a few steps."});
  sections.push_back({.path = "Inference", .doc = "Running an exported model."});
  sections.push_back({.path = "Generation", .doc = "Text generation.", .optional = true});
  sections.push_back({.path = "Compress", .doc = "Model compression.", .optional = true});
  sections.push_back({.path = "Compress.Prune", .doc = "Removing weights.", .optional = true});
  sections.push_back({.path = "Compress.Quantization", .doc = "Fewer bits.", .optional = true});
  const auto add = [&](KeySpec key) { keys.push_back(std::move(key)); };
  add(boolean("Profiler.enable", false, "Record a profile."));
  add(list("Profiler.scheduler", KeyType::IntList, Json::array({1, 5}),
           "First step, counted from 0, and the step after the last."));
  keys.back().min = 0;
  add(location(text("Profiler.profiler_log", "profile", "Folder of the profile, relative to the output folder.")));
  add(path_of(location(text("Inference.model_dir", nullptr, "Folder of the exported model."))));
  add(count("Inference.mp_degree", 1, 1, "Tensor-parallel processes."));
  add(choice("Generation.decode_strategy", {"sampling", "greedy_search", "beam_search"},
             "How the next token is chosen."));
  add(count("Generation.top_k", 50, 0, "Sample from the N most likely tokens; 0: all."));
  add(number("Generation.top_p", 0.75, 0, "Sample from the best tokens of this total probability."));
  keys.back().max = 1;
  add(positive("Generation.temperature", 1.0, "Sampling temperature: the logits are divided by it."));
  add(positive("Generation.repetition_penalty", 1.0,
               "Divides the logits of tokens that were there; negative ones are multiplied."));
  add(count("Generation.num_beams", 4, 1, "Number of beams, for beam_search."));
  add(number("Generation.length_penalty", 0.0, 0,
             "Of beam_search: a text's log probability is divided by its length to this power."));
  add(count("Generation.min_dec_len", 1, 0, "Minimum number of generated tokens."));
  add(count("Generation.max_dec_len", 200, 1, "Maximum number of generated tokens."));
  add(count("Generation.num_return_sequences", 1, 1, "Generated texts per prompt."));
  add(path_of(text("Compress.pretrained", nullptr, "Weights to start from.")));
  add(boolean("Compress.Prune.enable", false, "Prune."));
  add(choice("Compress.Prune.criterion", {"l1_norm", "l2_norm", "fpgm"}, "Criterion that ranks filters."));
  add(fraction("Compress.Prune.ratio", 0.125, "Fraction of filters to remove."));
  add(boolean("Compress.Quantization.enable", false, "Quantise."));
  add(choice("Compress.Quantization.weight_quantize_type", {"abs_max", "channel_wise_abs_max"}, "Scale of weights."));
  add(choice("Compress.Quantization.activation_quantize_type", {"moving_average_abs_max"}, "Scale of activations."));
  add(text("Compress.Quantization.weight_preprocess_type", nullptr, "Learned clipping; null: none."));
  keys.back().choices = {"PACT"};
  add(text("Compress.Quantization.activation_preprocess_type", nullptr, "Learned clipping; null: none."));
  keys.back().choices = {"PACT"};
  add(count("Compress.Quantization.weight_bits", 8, 2, "Bits per weight."));
  add(count("Compress.Quantization.activation_bits", 8, 2, "Bits per activation."));
  add(list("Compress.Quantization.quantizable_layer_type", KeyType::StringList, Json::array({"Linear", "Conv2D"}),
           "Kinds of layers."));
}

Schema make_native() {
  Sections sections;
  Keys keys;
  sections.push_back({.path = {}, .doc = "A case."});
  add_head(sections, keys);
  add_global(sections, keys);
  add_engine(sections, keys);
  sections.push_back({.path = "Model", .doc = "The model; its keys are those that the case has.", .open = true});
  keys.push_back(required(text("Model.name", "", "Name of the model in the registry.")));
  add_data(sections, keys);
  add_optimizer(sections, keys);
  add_distributed(sections, keys);
  add_tools(sections, keys);
  return {std::move(sections), std::move(keys)};
}

Schema make_foreign() {
  Sections sections;
  Keys keys;
  sections.push_back({.path = "", .doc = "A case.", .open = true});
  add_head(sections, keys);
  return {std::move(sections), std::move(keys)};
}

}  // namespace

const Schema& Schema::native() {
  static const Schema kSchema = make_native();
  return kSchema;
}

const Schema& Schema::foreign() {
  static const Schema kSchema = make_foreign();
  return kSchema;
}

}  // namespace assay
