// What the contract of tests/worker/models/models_test.cpp runs a model with: options that make it small, and training
// batches. A model that is small by default and sees images needs no entry here.
#pragma once

#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "data/dataset.h"
#include "data/text_targets.h"
#include "engine/module.h"

namespace assay {

struct ContractCase {
  std::string twin;                                              // tests/peers/TWIN.py
  Json section;                                                  // Model, with its name
  std::vector<std::pair<std::string, torch::Tensor>> data = {};  // [S, B, ...] each, S training batches; inputs first
  // What model and twin compare their numbers in. A deep network blows the rounding of float32 up beyond what the test
  // allows; in float64 nothing but the order of sums differs.
  torch::ScalarType type = torch::kFloat;

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

inline ContractCase llama_tied_contract() {
  ContractCase c = llama_contract();
  c.twin = "llama_tied";
  c.section["tie_word_embeddings"] = true;
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

inline ContractCase glm_rotary_contract() {
  ContractCase c = glm_contract();
  c.twin = "glm_rotary";
  c.section["position_embedding"] = "rotary";
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

// Images of noise with one text each, and an ignored one in some.
inline ContractCase ocr_det_contract() {
  constexpr int64_t kSteps = 10, kBatch = 4, kSize = 96, kMaxTexts = 3;
  ContractCase c{
      "ocr_det",
      {{"name", "ocr_det"}, {"scale", 0.35}, {"use_se", true}, {"neck_channels", 32}, {"image_size", kSize}}};
  c.type = torch::kDouble;
  torch::manual_seed(5);
  const std::vector<int64_t> maps = {kSteps, kBatch, kSize, kSize};
  c.data = {{"image", torch::randn({kSteps, kBatch, 3, kSize, kSize})},
            {"shrink_map", torch::empty(maps)},
            {"shrink_mask", torch::empty(maps)},
            {"threshold_map", torch::empty(maps)},
            {"threshold_mask", torch::empty(maps)},
            {"outlines", torch::zeros({kSteps, kBatch, kMaxTexts, 4, 2})},
            {"states", torch::full({kSteps, kBatch, kMaxTexts}, -1)}};
  for (int64_t i = 0; i < kSteps * kBatch; ++i) {
    const auto outline = [](double x, double y, double width, double height, bool ignored) {
      return TextOutline{.points = {{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}},
                         .ignored = ignored};
    };
    const auto shift = static_cast<double>(i % 7);
    std::vector<TextOutline> texts = {outline(8 + 5 * shift, 12 + 3 * shift, 40 - shift, 20, false)};
    if (i % 3 == 0) texts.push_back(outline(4, 70, 60, 20, true));
    const TextTargets targets = make_text_targets(texts, {.height = kSize, .width = kSize});
    const std::vector<float>* made[] = {&targets.shrink_map, &targets.shrink_mask, &targets.threshold_map,
                                        &targets.threshold_mask};
    const int64_t step = i / kBatch, sample = i % kBatch;
    for (size_t m = 0; m < 4; ++m) {
      c.data[m + 1].second[step][sample].copy_(torch::tensor(*made[m]).view({kSize, kSize}));
    }
    for (int64_t k = 0; k < static_cast<int64_t>(texts.size()); ++k) {
      const TextOutline& text = texts[static_cast<size_t>(k)];
      c.data[6].second[step][sample][k] = text.ignored ? 0 : 1;
      for (int64_t p = 0; p < 4; ++p) {
        c.data[5].second[step][sample][k][p][0] = text.points[static_cast<size_t>(p)].x;
        c.data[5].second[step][sample][k][p][1] = text.points[static_cast<size_t>(p)].y;
      }
    }
  }
  return c;
}

inline ContractCase ocr_det_plain_contract() {
  ContractCase c = ocr_det_contract();
  c.twin = "ocr_det_plain";
  c.section["use_se"] = false;
  return c;
}

// The published networks, on images as small as leave a few pixels for the last normalisations.
inline ContractCase standard_resnet_contract(int64_t depth) {
  ContractCase c{"resnet" + std::to_string(depth),
                 {{"name", "resnet"}, {"depth", depth}, {"num_classes", 10}, {"image_size", 64}}};
  c.type = torch::kDouble;
  torch::manual_seed(5);
  c.data = {{"image", torch::randn({10, 4, 3, 64, 64})}, {"label", torch::randint(10, {10, 4})}};
  return c;
}
inline ContractCase resnet18_contract() { return standard_resnet_contract(18); }
inline ContractCase resnet50_contract() { return standard_resnet_contract(50); }

// Images, and ten classes of them.
inline ContractCase image_contract(const std::string& name, const Module& with_defaults) {
  ContractCase c{name, {{"name", name}}};
  if (name == "resnet") c.type = torch::kDouble;  // on some processors ten steps in float32 were 1e-3 apart
  std::vector<int64_t> shape = with_defaults.input_spec().at(0).shape;
  shape[0] = 16;
  shape.insert(shape.begin(), 10);
  torch::manual_seed(5);
  c.data = {{"image", torch::randn(shape)}, {"label", torch::randint(10, {10, 16})}};
  return c;
}

}  // namespace assay
