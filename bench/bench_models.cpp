#include "bench_models.h"

#include <vector>

#include "base/error.h"
#include "models/bert/model.h"
#include "models/deepfm/model.h"
#include "models/glm/model.h"
#include "models/gpt/model.h"
#include "models/llama/model.h"
#include "models/ocr_det/model.h"
#include "models/resnet/model.h"
#include "models/resnet/standard.h"
#include "models/simplenet/model.h"

namespace assay {

namespace {

Optimizer::Options optimizer(const char* name, double weight_decay) {
  Optimizer::Options options;
  options.name = name;
  options.weight_decay = weight_decay;
  return options;
}

gpt::Options gpt124m(int64_t length) {
  gpt::Options options;
  options.sequence_length = length;
  options.hidden_dropout_prob = options.attention_probs_dropout_prob = 0;  // so that losses can be compared
  return options;
}

bert::Options bert_base() {
  bert::Options options;
  options.sequence_length = 128;
  options.hidden_dropout_prob = options.attention_probs_dropout_prob = 0;
  return options;
}

glm::Options glm_base() {
  glm::Options options;
  options.hidden_dropout_prob = options.attention_probs_dropout_prob = 0;
  return options;
}

// GPT-2's size with Llama's blocks; the published ones would take minutes a step.
llama::Options llama_small() {
  llama::Options options;
  options.hidden_size = 768;
  options.num_layers = 12;
  options.num_attention_heads = 12;
  options.num_key_value_heads = 4;
  options.ffn_hidden_size = 2048;
  options.sequence_length = options.max_position_embeddings = 512;
  return options;
}

const std::vector<BenchModel>& all() {
  static const std::vector<BenchModel> models = {
      {"simplenet", optimizer("Adam", 0), 1e-3,
       [] { return std::make_unique<simplenet::SimpleNet>(simplenet::Options{}); }},
      {"resnet", optimizer("AdamW", 0.02), 1e-3, [] { return std::make_unique<resnet::ResNet>(resnet::Options{}); }},
      {"resnet50", optimizer("Momentum", 1e-4), 1e-4,
       [] { return std::make_unique<resnet::StandardResNet>(resnet::StandardOptions{}); }},
      {"ocr_det", optimizer("AdamW", 0.02), 1e-3,
       [] { return std::make_unique<ocr_det::TextDetection>(ocr_det::Options{}, ocr_det::BoxOptions{}); }},
      {"deepfm", optimizer("Adam", 0), 1e-3,
       [] { return std::make_unique<deepfm::DeepFm>(deepfm::Options{.dropout = 0}); }},
      {"gpt124m", optimizer("AdamW", 0.02), 1e-4, [] { return std::make_unique<gpt::Gpt>(gpt124m(1024)); }},
      {"gpt124m-short", optimizer("AdamW", 0.02), 1e-4, [] { return std::make_unique<gpt::Gpt>(gpt124m(256)); }},
      {"bert_base", optimizer("AdamW", 0.02), 1e-4, [] { return std::make_unique<bert::Bert>(bert_base()); }},
      {"glm_base", optimizer("AdamW", 0.02), 1e-4, [] { return std::make_unique<glm::Glm>(glm_base()); }},
      {"llama", optimizer("AdamW", 0.02), 1e-4, [] { return std::make_unique<llama::Llama>(llama_small()); }},
  };
  return models;
}

}  // namespace

const BenchModel& bench_model(const std::string& name) {
  for (const BenchModel& model : all()) {
    if (model.name == name) return model;
  }
  throw UsageError("no model '" + name + "' in bench/bench_models.cpp");
}

}  // namespace assay
