// What transformers have besides the contract of models_test.cpp: recomputing, the published sizes, metrics.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "contract_case.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/loop/engine.h"
#include "engine/loop/profiler.h"
#include "models/bert/model.h"
#include "models/glm/model.h"
#include "models/gpt/model.h"
#include "models/llama/model.h"
#include "models/registry.h"
#include "nn/transformer_parts.h"
#include "record/keys.h"

namespace assay {
namespace {

gpt::Options small_gpt() {
  gpt::Options o;
  o.vocab_size = 97;
  o.hidden_size = 48;
  o.num_layers = 3;
  o.num_attention_heads = 3;
  o.ffn_hidden_size = 80;
  o.max_position_embeddings = o.sequence_length = 72;
  o.hidden_dropout_prob = o.attention_probs_dropout_prob = 0;
  return o;
}

bert::Options small_bert() {
  bert::Options o;
  o.vocab_size = 101;
  o.hidden_size = 48;
  o.num_layers = 2;
  o.num_attention_heads = 3;
  o.ffn_hidden_size = 80;
  o.max_position_embeddings = o.sequence_length = 70;
  o.hidden_dropout_prob = o.attention_probs_dropout_prob = 0;
  return o;
}

// Dropout is drawn from the generator: the same state gives the same loss, another another.
TEST(Transformers, DrawDropoutFromTheGenerator) {
  gpt::Options options = small_gpt();
  options.hidden_dropout_prob = options.attention_probs_dropout_prob = 0.2;
  gpt::Gpt module(options);
  torch::manual_seed(2);
  module.init();
  const ContractCase data = gpt_contract();
  const auto loss = [&](uint64_t seed) {
    torch::manual_seed(seed);
    return module.training_step(data.batch(0)).item<double>();
  };
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
  module.model().eval();
  EXPECT_EQ(loss(1), loss(2));
}

// A loader of the contract's batches.
class ContractBatches final : public Dataset {
 public:
  explicit ContractBatches(ContractCase data) : data_(std::move(data)) {}
  int64_t size() const override { return data_.num_batches() * data_.data.at(0).second.size(1); }
  std::string hash() const override { return "contract"; }
  Batch gather(std::span<const int64_t> indices, int64_t /*epoch*/) const override {
    const torch::Tensor rows = torch::tensor(std::vector<int64_t>(indices.begin(), indices.end()));
    Batch batch{{}, rows.numel()};
    for (const auto& [name, tensor] : data_.data) batch.tensors.push_back(tensor.flatten(0, 1).index_select(0, rows));
    return batch;
  }

 private:
  ContractCase data_;
};

void train_gpt(Module& module, const PrecisionOptions& precision, EngineObserver& observer) {
  EngineOptions options;
  options.max_steps = 3;
  options.local_batch_size = 3;
  options.optimizer.name = "AdamW";
  options.schedule.learning_rate = 0.001;
  options.schedule.decay_steps = 0;
  options.precision = precision;
  Engine engine(module, options, {.checkpoint_folder = {}, .label = {}, .target = {}, .observers = {&observer}});
  Loader loader(std::make_shared<ContractBatches>(gpt_contract()),
                {.num_samples = 30, .batch_size = 3, .shuffle = false, .drop_last = true, .seed = 1},
                {.num_workers = 0, .prefetch = 1});
  testing::internal::CaptureStdout();  // the module's log lines, the profile's table
  engine.fit(loader, nullptr);
  testing::internal::GetCapturedStdout();
}

class IdleOperators final : public EngineObserver {
 public:
  std::vector<std::string> told;
  void on_event(std::string_view name, const Json& data) override {
    if (name == keys::kIdleOperators) told = data.at("operators").get<std::vector<std::string>>();
  }
};

// Each list changes what a step of a model computes, and one that does not is told.
TEST(Transformers, TrainOtherwiseWithListsOfOperators) {
  const auto weights_with = [](std::vector<std::string> black, const std::vector<std::string>& idle) {
    gpt::Gpt module(small_gpt());
    torch::manual_seed(2);
    module.init();
    IdleOperators observer;
    train_gpt(module, {.mixed = torch::kBFloat16, .black_list = std::move(black)}, observer);
    EXPECT_EQ(observer.told, idle);
    return hash_of(state_of(module.model()));
  };
  const std::string plain = weights_with({}, {});
  EXPECT_EQ(weights_with({}, {}), plain);
  const std::string by_linear = weights_with({"linear"}, {});
  EXPECT_NE(by_linear, plain);
  EXPECT_NE(weights_with({"linear", "matmul"}, {}), by_linear);  // attention's products
  EXPECT_EQ(weights_with({"conv2d"}, {"conv2d"}), plain);
}

// The fused operators and the update are in the table of a profile, under names of their own.
TEST(Transformers, NameFusedOperatorsInAProfile) {
  const TempFolder folder("profile");
  gpt::Gpt module(small_gpt());
  module.init();
  Profiler profiler({.first_step = 1, .end_step = 2, .folder = folder.path()});
  train_gpt(module, {}, profiler);
  std::istringstream table(read_file(folder.path() / "operators.txt"));
  std::map<std::string, int> calls;
  for (std::string name, line; std::getline(table, line);) {
    std::istringstream words(line);
    words >> name;
    words >> calls[name];
  }
  EXPECT_EQ(calls["assay::attention"], 3);  // one per layer
  EXPECT_EQ(calls["assay::optimizer_step"], 1);
  for (const char* name : {"assay::linear", "assay::gelu_linear", "assay::residual_norm", "assay::layer_norm",
                           "assay::linear_cross_entropy"}) {
    EXPECT_GT(calls[name], 0) << name;
  }
}

// What is computed again is bitwise what was computed first, dropout included.
template <typename ModuleOf, typename OptionsOf>
void expect_recompute_changes_nothing(OptionsOf options, const ContractCase& data) {
  options.hidden_dropout_prob = options.attention_probs_dropout_prob = 0.2;
  const auto gradients = [&](Recomputes what) {
    options.recomputes = what;
    ModuleOf module(options);
    torch::manual_seed(2);
    module.init();
    const torch::Tensor loss = module.training_step(data.batch(0));
    module.backward(loss);
    std::map<std::string, torch::Tensor> all = {{"loss", loss.detach()}, {"next random number", torch::rand({1})}};
    for (const auto& item : module.model().named_parameters()) all[item.key()] = item.value().grad().to_dense();
    return all;
  };
  const auto plain = gradients(Recomputes::Nothing);
  for (const Recomputes what : {Recomputes::Attention, Recomputes::Blocks}) {
    for (const auto& [name, value] : gradients(what)) EXPECT_TRUE(torch::equal(value, plain.at(name))) << name;
  }
}

TEST(Transformers, ComputeTheSameWithRecompute) {
  expect_recompute_changes_nothing<gpt::Gpt>(small_gpt(), gpt_contract());
  expect_recompute_changes_nothing<bert::Bert>(small_bert(), bert_contract());
  for (const ContractCase& glm : {glm_contract(), glm_rotary_contract()}) {
    Json glm_section = glm.section;
    glm_section.erase("name");
    Reader glm_reader(glm_section, "Model");
    expect_recompute_changes_nothing<glm::Glm>(glm::read_options(glm_reader), glm);
  }
  const ContractCase llama = llama_contract();
  Json section = llama.section;
  section.erase("name");
  section["tie_word_embeddings"] = true;
  Reader reader(section, "Model");
  expect_recompute_changes_nothing<llama::Llama>(llama::read_options(reader), llama);
}

TEST(Transformers, ReadFleetXNamesOfRecompute) {
  const auto read = [](const Json& section) {
    Reader reader(section, "Model");
    return gpt::read_options(reader).recomputes;
  };
  EXPECT_EQ(read(Json::object()), Recomputes::Nothing);
  EXPECT_EQ(read({{"use_recompute", true}}), Recomputes::Blocks);
  EXPECT_EQ(read({{"use_recompute", true}, {"recompute_granularity", "full_attn"}}), Recomputes::Attention);
  EXPECT_EQ(read({{"use_recompute", true}, {"recompute_granularity", "core_attn"}}), Recomputes::Nothing);
  EXPECT_THROW(read({{"recompute_granularity", "half"}}), ConfigError);
}

// The counts of the published checkpoints.
TEST(Transformers, HaveThePublishedSizes) {
  const UndrawnWeights only_sizes;
  gpt::Gpt gpt_base{gpt::Options{}};
  gpt_base.init();
  EXPECT_EQ(num_parameters(gpt_base), 124'439'808);
  EXPECT_EQ(gpt_base.model().named_parameters()["transformer.h.11.attn.c_attn.weight"].sizes(),
            at::IntArrayRef({768, 2304}));
  const Json medium = {{"hidden_size", 1024}, {"num_layers", 24}, {"num_attention_heads", 16}};
  Reader reader(medium, "Model");
  gpt::Gpt gpt_medium{gpt::read_options(reader)};
  gpt_medium.init();
  EXPECT_EQ(num_parameters(gpt_medium), 354'823'168);
  bert::Bert bert_base{bert::Options{}};
  bert_base.init();
  int64_t body = 0;
  for (const auto& item : bert_base.model().named_parameters()) {
    if (item.key().starts_with("bert.")) body += item.value().numel();
  }
  EXPECT_EQ(body, 109'482'240);
  glm::Glm glm_base{glm::Options{}};
  glm_base.init();
  // 12 layers as GPT-2's, tables of 30592 and twice 513 rows, the last normalisation: the 110 million of the paper.
  EXPECT_EQ(num_parameters(glm_base), 12 * (12 * 768 * 768 + 13 * 768) + (30592 + 2 * 513 + 2) * 768);
  llama::Llama tiny_llama{llama::Options{}};
  tiny_llama.init();
  EXPECT_EQ(num_parameters(tiny_llama), 1'100'048'384);
}

// A model that knows nothing gives every token the same probability: log2 V bits each.
TEST(Transformers, MeasureBitsPerByteOfGpt) {
  gpt::Gpt module(small_gpt());
  module.init();
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : module.model().parameters()) parameter.zero_();
  Batch batch = gpt_contract().batch(0);
  const double num_labels = batch.tensors[1].ne(-100).sum().item<double>();
  batch.text_bytes = 4 * num_labels;
  const EvalStep step = module.validation_step(batch);
  const MetricValues metrics = module.validation_epoch_end(0, {0, step.num_samples, step.sums, {}});
  EXPECT_NEAR(metrics.at("loss"), std::log(97), 1e-5);
  EXPECT_NEAR(metrics.at("perplexity"), 97, 1e-3);
  EXPECT_NEAR(metrics.at("bits_per_byte"), std::log2(97) / 4, 1e-5);
  batch.text_bytes.reset();
  EXPECT_FALSE(
      module.validation_epoch_end(0, {0, 3, module.validation_step(batch).sums, {}}).contains("bits_per_byte"));
}

// Ends of spans are in the loss, not in the loss of spans.
TEST(Transformers, MeasureGlmSpansWithoutTheirEnds) {
  const ContractCase c = glm_contract();
  Json section = c.section;
  section.erase("name");
  Reader reader(section, "Model");
  glm::Glm module(glm::read_options(reader));
  module.init();
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : module.model().parameters()) parameter.zero_();
  // The last normalisation gives (1, 0, 0, ...), token 96, the end, has logit 5, the others 0.
  module.model().named_parameters()["transformer.final_layernorm.bias"][0] = 1;
  module.model().named_parameters()["word_embeddings.weight"][96][0] = 5;
  Batch batch = c.batch(0);
  batch.tensors[0].fill_(3);
  batch.tensors[3].fill_(-100);
  batch.tensors[3][0][60] = 7;
  batch.tensors[3][0][61] = 96;
  const EvalStep step = module.validation_step(batch);
  const MetricValues metrics = module.validation_epoch_end(0, {0, step.num_samples, step.sums});
  const double log_sum = std::log(96 + std::exp(5.0));
  EXPECT_NEAR(metrics.at("span_loss"), log_sum, 1e-5);
  EXPECT_NEAR(metrics.at("loss"), log_sum - 2.5, 1e-5);
  EXPECT_FALSE(metrics.contains("first_loss"));  // no span begins
  module.model().named_parameters()["word_embeddings.weight"][8][0] = 2;
  batch.tensors[0][1][62] = 95;  // a start
  batch.tensors[3][1][62] = 8;
  const EvalStep with_first = module.validation_step(batch);
  const MetricValues both = module.validation_epoch_end(0, {0, with_first.num_samples, with_first.sums});
  const double sum_of_two = std::log(95 + std::exp(5.0) + std::exp(2.0));
  EXPECT_NEAR(both.at("first_loss"), sum_of_two - 2, 1e-5);
  EXPECT_NEAR(both.at("span_loss"), sum_of_two - 1, 1e-5);
}

// What is left of a blank, and nothing else, decides what a third of the heads brings to the start of its span at
// first, and what is right of it another third. Values are made to say where they come from.
TEST(Transformers, StartGlmLookingBesideBlanks) {
  Json section = glm_rotary_contract().section;
  section.erase("name");
  section["num_attention_heads"] = 3;
  section["hidden_size"] = 192;
  Reader reader(section, "Model");
  glm::Glm module(glm::read_options(reader));
  module.init();
  const torch::NoGradGuard no_grad;
  torch::Tensor bias = module.model().named_parameters()["transformer.layers.1.attention.query_key_value.bias"];
  // A text of 40 tokens with its blank at 17, the start of the span behind it.
  torch::Tensor positions = torch::zeros({1, 2, 41}, torch::kLong);
  positions[0][0].copy_(torch::arange(41));
  positions[0][0][40] = 17;
  positions[0][1][40] = 1;
  const Rotations rotations(32, 73, 10'000);
  torch::Tensor qkv = torch::zeros({1, 41, 3 * 192});
  qkv[0].slice(1, 2 * 192).view({41, 3, 64}).slice(2, 0, 41).copy_(torch::eye(41).unsqueeze(1));
  AttentionOptions options{.num_heads = 3, .causal = true};
  options.rotation = rotations.at(positions, qkv);
  const torch::Tensor seen = attention(qkv, bias, options)[0][40].view({3, 64});
  EXPECT_EQ(seen[0].argmax().item<int64_t>(), 16);
  EXPECT_EQ(seen[1].argmax().item<int64_t>(), 18);
  EXPECT_GT(seen[0].max().item<double>(), 0.2);
  EXPECT_LT(seen[2].max().item<double>(), 0.1);
}

TEST(Transformers, RejectGlmHeadsThatCannotRotate) {
  Json section = glm_rotary_contract().section;
  section.erase("name");
  section["hidden_size"] = 54;  // heads of 18
  Reader reader(section, "Model");
  EXPECT_THROW(glm::read_options(reader), ConfigError);
  section["position_embedding"] = "sinusoidal";
  Reader unknown(section, "Model");
  EXPECT_THROW(glm::read_options(unknown), ConfigError);
}

// All answers right: the heads' weights and the labels are made for it.
TEST(Transformers, MeasureBothHeadsOfBert) {
  bert::Bert module(small_bert());
  module.init();
  const torch::NoGradGuard no_grad;
  auto parameters = module.model().named_parameters();
  parameters["cls.predictions.bias"][7] = 1000.0;  // always says token 7
  parameters["cls.seq_relationship.bias"][1] = 1000.0;
  Batch batch = bert_contract().batch(0);
  batch.tensors[3].masked_fill_(batch.tensors[3].ne(-100), 7);
  batch.tensors[3][0][0] = 8;
  batch.tensors[4] = torch::tensor({1, 1, 0});
  const double masked = batch.tensors[3].ne(-100).sum().item<double>();
  const EvalStep step = module.validation_step(batch);
  const MetricValues metrics = module.validation_epoch_end(0, {0, step.num_samples, step.sums, {}});
  EXPECT_NEAR(metrics.at("language_accuracy"), (masked - 1) / masked, 1e-6);
  EXPECT_NEAR(metrics.at("next_accuracy"), 2.0 / 3, 1e-6);
  EXPECT_NEAR(metrics.at("loss"), metrics.at("language_loss") + metrics.at("next_loss"), 1e-4);
  EXPECT_NEAR(metrics.at("next_loss"), 1000.0 / 3, 1);
}

// Forward and backward of one sequence, counted product by product.
TEST(Transformers, CountTheirOperations) {
  const double t = 1024, d = 768;
  const double layer = 2 * t * d * (3 * d + d + 4 * d + 4 * d) + 2 * 2 * d * t * (t + 1) / 2;
  EXPECT_DOUBLE_EQ(*gpt::Gpt(gpt::Options{}).flops_per_sample(), 3 * (12 * layer + 2 * t * d * 50257));
  bert::Options options;
  options.sequence_length = 128;
  const double s = 128;
  const double block = 2 * s * d * (3 * d + d + 4 * d + 4 * d) + 2 * 2 * d * s * s;
  EXPECT_DOUBLE_EQ(*bert::Bert(options).flops_per_sample(), 3 * (12 * block + 19 * 2 * d * (d + 30522)));
}

TEST(Transformers, RejectSillyOptions) {
  const auto refuses = [](const Json& section) {
    Reader for_gpt(section, "Model"), for_bert(section, "Model");
    EXPECT_THROW(gpt::read_options(for_gpt), ConfigError) << section;
    EXPECT_THROW(bert::read_options(for_bert), ConfigError) << section;
  };
  refuses({{"hidden_size", 0}});
  refuses({{"num_attention_heads", 7}});
  refuses({{"hidden_dropout_prob", 1.0}});
  refuses({{"sequence_length", 5000}});
  refuses({{"no_such_option", 1}});
  const Json section = {{"hidden_size", 96}, {"num_attention_heads", 4}, {"max_position_embeddings", 128}};
  Reader reader(section, "Model");
  const gpt::Options options = gpt::read_options(reader);
  EXPECT_EQ(options.ffn_hidden_size, 384);
  EXPECT_EQ(options.sequence_length, 128);
}

}  // namespace
}  // namespace assay
