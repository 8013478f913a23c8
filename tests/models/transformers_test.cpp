// The transformers, which are not cases yet: each against its twin in plain PyTorch, and the published sizes.
#include <gtest/gtest.h>

#include "../engine/peer.h"
#include "base/error.h"
#include "base/files.h"
#include "deploy/export.h"
#include "deploy/predictor.h"
#include "engine/tensor_file.h"
#include "models/bert/model.h"
#include "models/gpt/model.h"
#include "models/registry.h"
#include "precision_check.h"

namespace assay {
namespace {

constexpr int64_t kLanguageBatches = 10;
constexpr int64_t kSequences = 3;

struct TransformerCase {
  std::string name;
  std::unique_ptr<Module> module;
  std::vector<std::pair<std::string, torch::Tensor>> data;  // [S, B, ...] each
};

// The sizes that tests/peers/gpt.py and bert.py have.
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

TransformerCase gpt_case() {
  torch::manual_seed(9);
  TransformerCase made{"gpt", std::make_unique<gpt::Gpt>(small_gpt()), {}};
  made.module->init();
  torch::Tensor labels = torch::randint(97, {kLanguageBatches, kSequences, 72});
  labels.masked_fill_(torch::rand(labels.sizes()) < 0.1, -100);
  made.data = {{"tokens", torch::randint(97, {kLanguageBatches, kSequences, 72})}, {"labels", labels}};
  return made;
}

TransformerCase bert_case() {
  torch::manual_seed(9);
  TransformerCase made{"bert", std::make_unique<bert::Bert>(small_bert()), {}};
  made.module->init();
  const std::vector<int64_t> shape = {kLanguageBatches, kSequences, 70};
  torch::Tensor mask = torch::ones(shape, torch::kLong), masked = torch::full(shape, -100);
  mask.narrow(1, 1, 1).narrow(2, 50, 20).fill_(0);  // the second sequence is shorter
  masked.narrow(2, 0, 45).copy_(torch::where(torch::rand({kLanguageBatches, kSequences, 45}) < 0.2,
                                             torch::randint(101, {kLanguageBatches, kSequences, 45}),
                                             torch::tensor(-100)));
  made.data = {{"tokens", torch::randint(101, shape)},
               {"types", torch::randint(2, shape)},
               {"mask", mask},
               {"masked", masked},
               {"next", torch::randint(2, {kLanguageBatches, kSequences})}};
  return made;
}

Batch batch_of(const TransformerCase& c, int64_t step) {
  Batch batch{{}, kSequences};
  for (const auto& [name, tensor] : c.data) batch.tensors.push_back(tensor[step]);
  return batch;
}

double twin_difference(const torch::Tensor& a, const torch::Tensor& b) {
  const double scale = b.abs().max().item<double>();
  return (a - b).abs().max().item<double>() / (scale > 0 ? scale : 1);
}

void expect_twin(const TransformerCase& c) {
  Module& module = *c.module;
  const TempFolder folder("twin");
  save_tensors(folder.path() / "weights.safetensors", state_of(module.model()));
  save_tensors(folder.path() / "data.safetensors", {c.data.begin(), c.data.end()});
  run_peer(c.name + ".py", folder.path());
  const auto twin = load_tensors(folder.path() / "twin.safetensors").tensors;

  module.model().eval();
  EXPECT_LT(twin_difference(module.forward(batch_of(c, 0).tensors).detach(), twin.at("output")), 1e-5);
  module.model().train();
  module.backward(module.training_step(batch_of(c, 0)));
  for (const auto& item : module.model().named_parameters()) {
    // The gradient of a key's bias is 0 but for rounding: softmax does not see it.
    if (item.key().find("key.bias") != std::string::npos) continue;
    EXPECT_LT(twin_difference(item.value().grad(), twin.at("gradient." + item.key())), 1e-5) << item.key();
  }

  load_into(module.model(), load_tensors(folder.path() / "weights.safetensors").tensors, "weights");
  Optimizer::Options options;
  options.name = "Momentum";
  options.weight_decay = 5e-4;
  const auto optimizer = module.configure_optimizers(options);
  optimizer->clear_grad();
  for (int64_t i = 0; i < kLanguageBatches; ++i) {
    const torch::Tensor loss = module.training_step(batch_of(c, i));
    module.backward(loss);
    optimizer->step({.learning_rate = 0.05});
    optimizer->clear_grad();
    const double expected = twin.at("losses")[i].item<double>();
    EXPECT_NEAR(loss.item<double>(), expected, 1e-4 * expected) << "step " << i;
  }
}

TEST(Transformers, GptAgreesWithItsTwin) { expect_twin(gpt_case()); }
TEST(Transformers, BertAgreesWithItsTwin) { expect_twin(bert_case()); }

TEST(Transformers, ComputeInEveryPrecision) {
  for (const auto make_case : {gpt_case, bert_case}) {
    expect_every_precision([&] {
      TransformerCase c = make_case();
      Batch batch = batch_of(c, 0);
      return std::pair(std::move(c.module), std::move(batch));
    });
  }
}

// The loss of training and that of evaluation are two ways to the same number.
TEST(Transformers, TrainingAndEvaluationHaveOneLoss) {
  const TransformerCase c = gpt_case();
  const double trained = c.module->training_step(batch_of(c, 0)).item<double>();
  c.module->model().eval();
  const torch::NoGradGuard no_grad;
  EXPECT_NEAR(c.module->validation_step(batch_of(c, 0)).loss.item<double>(), trained, 1e-5);
}

TEST(Transformers, ExportsComputeTheSame) {
  for (const TransformerCase& c : {gpt_case(), bert_case()}) {
    const TempFolder folder("export");
    export_torchscript(*c.module, folder.path() / "model.pt", c.name);
    Predictor predictor(folder.path() / "model.pt");
    TensorList inputs = batch_of(c, 0).tensors;
    inputs.resize(c.module->input_spec().size());
    const torch::NoGradGuard no_grad;
    EXPECT_LT(twin_difference(predictor.run(inputs), c.module->forward(inputs)), 1e-5) << c.name;
  }
}

// Dropout is drawn from the generator: the same state gives the same loss, another another.
TEST(Transformers, DropoutFollowsTheGenerator) {
  gpt::Options options = small_gpt();
  options.hidden_dropout_prob = options.attention_probs_dropout_prob = 0.2;
  gpt::Gpt module(options);
  torch::manual_seed(2);
  module.init();
  const TransformerCase data = gpt_case();
  const auto loss = [&](uint64_t seed) {
    torch::manual_seed(seed);
    return module.training_step(batch_of(data, 0)).item<double>();
  };
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
  module.model().eval();
  EXPECT_EQ(loss(1), loss(2));
}

// What is computed again is bitwise what was computed first, dropout included.
template <typename ModuleOf, typename OptionsOf>
void expect_recompute_changes_nothing(OptionsOf options, const TransformerCase& data) {
  options.hidden_dropout_prob = options.attention_probs_dropout_prob = 0.2;
  const auto gradients = [&](Recomputes what) {
    options.recomputes = what;
    ModuleOf module(options);
    torch::manual_seed(2);
    module.init();
    const torch::Tensor loss = module.training_step(batch_of(data, 0));
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

TEST(Transformers, RecomputeChangesNothing) {
  expect_recompute_changes_nothing<gpt::Gpt>(small_gpt(), gpt_case());
  expect_recompute_changes_nothing<bert::Bert>(small_bert(), bert_case());
}

TEST(Transformers, RecomputeByFleetXNames) {
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

TEST(Transformers, HaveThePublishedSizes) {
  gpt::Gpt gpt_base{gpt::Options{}};
  gpt_base.init();
  EXPECT_EQ(num_parameters(gpt_base), 124'439'808);
  EXPECT_EQ(gpt_base.model().named_parameters()["transformer.h.11.attn.c_attn.weight"].sizes(),
            at::IntArrayRef({768, 2304}));
  bert::Bert bert_base{bert::Options{}};
  bert_base.init();
  int64_t body = 0;
  for (const auto& item : bert_base.model().named_parameters()) {
    if (item.key().starts_with("bert.")) body += item.value().numel();
  }
  EXPECT_EQ(body, 109'482'240);
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

TEST(Transformers, RefuseSillyOptions) {
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
