// What the contract of tests/models/models_test.cpp runs a model with: options that make it small, and training
// batches. A model that is small by default and sees images needs no entry here.
#pragma once

#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "data/dataset.h"
#include "engine/module.h"

namespace assay {

struct ContractCase {
  std::string twin;                                              // tests/peers/TWIN.py
  Json section;                                                  // Model, with its name
  std::vector<std::pair<std::string, torch::Tensor>> data = {};  // [S, B, ...] each, S training batches; inputs first

  Batch batch(int64_t step) const {
    Batch made{{}, data.at(0).second.size(1)};
    for (const auto& [name, tensor] : data) made.tensors.push_back(tensor[step].clone());
    return made;
  }
  int64_t num_batches() const { return data.at(0).second.size(0); }
};

// The sizes are those of the twin.
inline ContractCase gpt_contract() {
  ContractCase c{"gpt",
                 {{"name", "gpt"},
                  {"vocab_size", 97},
                  {"hidden_size", 48},
                  {"num_layers", 3},
                  {"num_attention_heads", 3},
                  {"ffn_hidden_size", 80},
                  {"max_position_embeddings", 72},
                  {"hidden_dropout_prob", 0.0},
                  {"attention_probs_dropout_prob", 0.0}}};
  torch::manual_seed(5);
  torch::Tensor labels = torch::randint(97, {10, 3, 72});
  labels.masked_fill_(torch::rand(labels.sizes()) < 0.1, -100);
  c.data = {{"tokens", torch::randint(97, {10, 3, 72})}, {"labels", labels}};
  return c;
}

inline ContractCase llama_contract() {
  ContractCase c = gpt_contract();
  c.twin = "llama";
  c.section = {
      {"name", "llama"},          {"vocab_size", 97},         {"hidden_size", 48},     {"num_layers", 2},
      {"num_attention_heads", 6}, {"num_key_value_heads", 2}, {"ffn_hidden_size", 64}, {"max_position_embeddings", 72}};
  return c;
}

inline ContractCase glm_contract() {
  ContractCase c = gpt_contract();
  c.twin = "glm";
  c.section["name"] = "glm";
  c.section["num_layers"] = 2;
  // Texts of 50, 64 and 71 tokens, spans behind them.
  const torch::Tensor text = torch::tensor({50, 64, 71}).expand({10, 3}).contiguous();
  const torch::Tensor in_span = torch::arange(72).ge(text.unsqueeze(2));
  c.data = {{"tokens", torch::randint(97, {10, 3, 72})},
            {"positions", torch::randint(73, {10, 3, 2, 72})},
            {"text", text},
            {"labels", torch::where(in_span, torch::randint(97, {10, 3, 72}), torch::tensor(-100))}};
  return c;
}

inline ContractCase bert_contract() {
  ContractCase c{"bert",
                 {{"name", "bert"},
                  {"vocab_size", 101},
                  {"hidden_size", 48},
                  {"num_layers", 2},
                  {"num_attention_heads", 3},
                  {"ffn_hidden_size", 80},
                  {"max_position_embeddings", 70},
                  {"hidden_dropout_prob", 0.0},
                  {"attention_probs_dropout_prob", 0.0}}};
  torch::manual_seed(5);
  const std::vector<int64_t> shape = {10, 3, 70};
  torch::Tensor mask = torch::ones(shape, torch::kLong), masked = torch::full(shape, -100);
  mask.narrow(1, 1, 1).narrow(2, 50, 20).fill_(0);  // the second sequence is shorter
  const torch::Tensor hide = torch::rand({10, 3, 45}) < 0.2;
  masked.narrow(2, 0, 45).copy_(torch::where(hide, torch::randint(101, {10, 3, 45}), torch::tensor(-100)));
  c.data = {{"tokens", torch::randint(101, shape)},
            {"types", torch::randint(2, shape)},
            {"mask", mask},
            {"masked", masked},
            {"next", torch::randint(2, {10, 3})}};
  return c;
}

inline ContractCase bert_classifier_contract() {
  ContractCase c = bert_contract();
  c.twin = "bert_classifier";
  c.section["num_classes"] = 4;
  c.data.resize(3);
  c.data.emplace_back("label", torch::randint(4, {10, 3}));
  return c;
}

// Every batch has every value of every field: the twin's dense gradients update all rows, ours those of the batch.
inline ContractCase deepfm_contract() {
  ContractCase c{"deepfm",
                 {{"name", "deepfm"},
                  {"fields", {5, 7, 3}},
                  {"embedding_size", 4},
                  {"hidden_sizes", {16, 8}},
                  {"dropout", 0.0},
                  {"initializer_range", 0.5}}};
  torch::manual_seed(5);
  constexpr int64_t kBatches = 10, kBatch = 14;
  for (const int64_t size : {5, 7, 3}) {
    std::vector<torch::Tensor> batches;
    for (int64_t i = 0; i < kBatches; ++i) batches.push_back(torch::randperm(kBatch).remainder(size));
    c.data.emplace_back("field" + std::to_string(c.data.size()), torch::stack(batches));
  }
  c.data.emplace_back("label", torch::randint(2, {kBatches, kBatch}).to(torch::kFloat));
  return c;
}

inline ContractCase simplenet_relu_contract() {
  ContractCase c{"simplenet_relu", {{"name", "simplenet"}, {"image_size", 36}, {"activation", "relu"}}};
  torch::manual_seed(5);
  c.data = {{"image", torch::randn({10, 16, 36})}, {"label", torch::randint(10, {10, 16})}};
  return c;
}

// Images, and ten classes of them.
inline ContractCase image_contract(const std::string& name, const Module& with_defaults) {
  ContractCase c{name, {{"name", name}}};
  std::vector<int64_t> shape = with_defaults.input_spec().at(0).shape;
  shape[0] = 16;
  shape.insert(shape.begin(), 10);
  torch::manual_seed(5);
  c.data = {{"image", torch::randn(shape)}, {"label", torch::randint(10, {10, 16})}};
  return c;
}

}  // namespace assay
