#include "frontends/parallel/strategies.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace assay {

const std::vector<ParallelStrategy>& strategies() {
  static const std::vector<ParallelStrategy> kTable = {
      {.name = "dp2", .what = "data parallel: 2 replicas", .dp = 2},
      {.name = "dp4", .what = "data parallel: 4 replicas", .dp = 4},
      {.name = "sharded1x2", .what = "optimizer state in 2 shards", .sharding = 2, .stage = 1},
      {.name = "sharded2x2", .what = "and gradients", .sharding = 2, .stage = 2},
      {.name = "sharded3x2", .what = "and parameters", .sharding = 2, .stage = 3},
      {.name = "tp2", .what = "tensor parallel: layers in 2 parts", .mp = 2},
      {.name = "tp4", .what = "tensor parallel: layers in 4 parts", .mp = 4},
      {.name = "sp", .what = "tp2, sequences split between layers", .mp = 2, .sequence_parallel = true},
      {.name = "pp2", .what = "pipeline of 2 stages", .pp = 2, .micro_batches = 4},
      {.name = "pp4", .what = "pipeline of 4 stages", .pp = 4, .micro_batches = 4},
      {.name = "interleaved", .what = "pp2, 2 parts a stage", .pp = 2, .virtual_pp = 2, .micro_batches = 4},
      {.name = "dp2xtp2", .what = "2 replicas in 2 parts", .dp = 2, .mp = 2},
      {.name = "tp2xpp2", .what = "2 stages in 2 parts", .mp = 2, .pp = 2, .micro_batches = 4},
      {.name = "dp2xpp2", .what = "2 replicas in 2 stages", .dp = 2, .pp = 2, .micro_batches = 2},
      {.name = "sharded2xtp2", .what = "sharded2x2 and tp2", .sharding = 2, .stage = 2, .mp = 2},
      {.name = "sharded3xtp2", .what = "sharded3x2 and tp2", .sharding = 2, .stage = 3, .mp = 2},
      {.name = "recompute", .what = "activations computed again", .recompute = true},
  };
  return kTable;
}

namespace {

const std::vector<std::string> kTransformerDropout = {"Model.hidden_dropout_prob=0",
                                                      "Model.attention_probs_dropout_prob=0"};
// Four layers for four stages, four heads for four parts.
const std::vector<std::string> kTinyTransformer = {"Model.hidden_size=32", "Model.num_layers=4",
                                                   "Model.num_attention_heads=4", "Model.ffn_hidden_size=64",
                                                   "Global.local_batch_size=8"};

std::vector<std::string> tiny_transformer(const std::vector<std::string>& more) {
  std::vector<std::string> all = kTinyTransformer;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

const std::vector<ParallelModel>& models() {
  static const std::vector<ParallelModel> kTable = {
      {.name = "gpt",
       .transformer = true,
       .no_dropout = kTransformerDropout,
       .tiny = tiny_transformer({"Model.max_position_embeddings=16", "Data.Train.dataset.max_seq_len=16"})},
      {.name = "llama",
       .transformer = true,
       .no_dropout = kTransformerDropout,
       // Two heads share each pair of keys and values, also where heads are shared by four.
       .tiny = tiny_transformer({"Model.max_position_embeddings=16", "Data.Train.dataset.max_seq_len=16",
                                 "Model.num_attention_heads=8", "Model.num_key_value_heads=4"})},
      {.name = "glm",
       .transformer = true,
       .whole_batch_matters = true,  // its loss is a mean over the tokens of spans, of which samples have many or few
       .no_dropout = kTransformerDropout,
       .tiny = tiny_transformer({"Model.max_position_embeddings=32", "Data.Train.dataset.max_seq_len=32",
                                 "Data.Train.dataset.source_seq_len=20"})},
      {.name = "bert",
       .transformer = true,
       .no_dropout = kTransformerDropout,
       .tiny = tiny_transformer({"Model.max_position_embeddings=16", "Data.Train.dataset.max_seq_len=16"})},
      {.name = "resnet",
       .recomputes = true,
       .whole_batch_matters = true,  // batch norm
       // A gradient jumps where the input of a ReLU is within rounding of 0. In float32 that happens about once in a
       // million activations, and there are 80,000 in a step. Such a jump is one activation among thousands, a strategy
       // that is wrong is wrong in all of them: steps so small that only the latter shows.
       .tiny = {"Model.width=8", "Model.blocks=[2, 1, 1]", "Global.local_batch_size=8", "Optimizer.epsilon=0.1",
                "Optimizer.lr.name=constant", "Optimizer.lr.learning_rate=0.000001"}},
      {.name = "deepfm",
       .recomputes = true,
       .no_dropout = {"Model.dropout=0"},
       .tiny = {"Model.embedding_size=4", "Model.hidden_sizes=[16, 16, 16]", "Global.local_batch_size=8"}},
      {.name = "simplenet", .tiny = {"Global.local_batch_size=8"}},
  };
  return kTable;
}

}  // namespace

const ParallelStrategy& strategy_named(const std::string& name) {
  std::vector<std::string> names;
  for (const ParallelStrategy& strategy : strategies()) {
    if (strategy.name == name) return strategy;
    names.push_back(strategy.name);
  }
  throw UsageError(fmt::format("no strategy '{}'{}; known: {}", name, did_you_mean(name, names), join(names, ", ")));
}

std::vector<Setting> settings_of(const ParallelStrategy& strategy, int64_t global_batch) {
  const int64_t parts = int64_t{strategy.num_replicas()} * strategy.micro_batches;
  if (global_batch % parts != 0) {
    throw UsageError(
        fmt::format("strategy {} needs a batch that divides by {} (replicas * micro-batches), but it is {}",
                    strategy.name, parts, global_batch));
  }
  const int64_t local_batch = global_batch / strategy.num_replicas();
  std::vector<Setting> settings;
  const auto set = [&](const char* key, auto value) {
    settings.emplace_back(fmt::format("{}={}", key, value), fmt::format("strategy {}", strategy.name));
  };
  set("Distributed.dp_degree", strategy.dp);
  set("Distributed.mp_degree", strategy.mp);
  set("Distributed.pp_degree", strategy.pp);
  set("Distributed.virtual_pp_degree", strategy.virtual_pp);
  set("Distributed.sharding.sharding_degree", strategy.sharding);
  set("Distributed.sharding.sharding_stage", strategy.stage);
  set("Distributed.sequence_parallel", strategy.sequence_parallel);
  set("Global.global_batch_size", global_batch);
  set("Global.local_batch_size", local_batch);
  set("Global.micro_batch_size", local_batch / strategy.micro_batches);
  set("Engine.accumulate_steps", strategy.micro_batches);
  if (strategy.recompute) set("Model.use_recompute", true);
  return settings;
}

ParallelModel parallel_model(const std::string& name) {
  for (const ParallelModel& model : models()) {
    if (model.name == name) return model;
  }
  ParallelModel unknown;
  unknown.name = name;
  return unknown;
}

std::string not_applicable(const ParallelStrategy& strategy, const ParallelModel& model) {
  if (model.transformer) return "";
  if (strategy.sequence_parallel) return fmt::format("{} has no sequences", model.name);
  if (strategy.recompute && !model.recomputes)
    return fmt::format("{} has no blocks that can be computed again", model.name);
  return "";
}

}  // namespace assay
