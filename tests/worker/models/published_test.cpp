// Weights under the names that others publish them with.
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "../engine/peer.h"
#include "base/error.h"
#include "base/files.h"
#include "contract_case.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/tensor_file.h"
#include "models/registry.h"

namespace assay {
namespace {

std::unique_ptr<Module> made(const ContractCase& c, uint64_t seed) {
  torch::manual_seed(seed);
  return make_module(Reader(c.section, "Model"));
}

torch::Tensor output_of(Module& module, const ContractCase& c) {
  const torch::NoGradGuard no_grad;
  module.model().eval();
  return module.forward(inputs_of(c.batch(0)));
}

// The file that the peer makes of a model's weights.
fs::path published_file(const Module& module, const TempFolder& folder, const char* name) {
  save_tensors(folder.path() / "weights.safetensors", state_of(module.model()));
  run_peer("published.py", folder.path());
  return folder.path() / name;
}

TEST(Published, LoadsGpt2ByItsNames) {
  const TempFolder folder("published");
  const ContractCase c = gpt_contract();
  const auto source = made(c, 1), target = made(c, 2);
  const fs::path file = published_file(*source, folder, "gpt2.safetensors");
  EXPECT_EQ(load_pretrained(file, *target), hash_of(state_of(source->model())));
  EXPECT_TRUE(output_of(*target, c).equal(output_of(*source, c)));
  // In half precision, as many are.
  auto tensors = load_tensors(file).tensors;
  for (auto& [name, tensor] : tensors) tensor = tensor.to(torch::kHalf);
  save_tensors(file, {tensors.begin(), tensors.end()});
  load_pretrained(file, *target);
  EXPECT_LT((output_of(*target, c) - output_of(*source, c)).abs().max().item<double>(), 1e-2);
  tensors.erase("h.1.mlp.c_fc.bias");
  save_tensors(file, {tensors.begin(), tensors.end()});
  EXPECT_THROW(load_pretrained(file, *target), DataError);
  tensors["h.1.mlp.c_fc.bias"] = torch::zeros({81});
  save_tensors(file, {tensors.begin(), tensors.end()});
  EXPECT_THROW(load_pretrained(file, *target), DataError);
}

TEST(Published, LoadsBertByItsNames) {
  const TempFolder folder("published");
  const ContractCase c = bert_contract();
  const auto source = made(c, 1), target = made(c, 2);
  const fs::path file = published_file(*source, folder, "bert.safetensors");
  EXPECT_EQ(load_pretrained(file, *target), hash_of(state_of(source->model())));
  EXPECT_TRUE(output_of(*target, c).equal(output_of(*source, c)));
  // A classifier takes the encoder and keeps the classes that it has drawn.
  const ContractCase classifying = bert_classifier_contract();
  const auto classifier = made(classifying, 3);
  const torch::Tensor drawn = classifier->model().named_parameters()["classifier.weight"].detach().clone();
  load_pretrained(file, *classifier);
  auto parameters = classifier->model().named_parameters();
  EXPECT_TRUE(parameters["classifier.weight"].equal(drawn));
  EXPECT_TRUE(parameters["bert.encoder.layer.1.output.dense.weight"].equal(
      source->model().named_parameters()["bert.encoder.layer.1.output.dense.weight"]));
}

TEST(Published, LoadsOurOwnFilesUnchanged) {
  const TempFolder folder("published");
  for (const auto& c : {gpt_contract(), llama_contract(), bert_contract(), bert_classifier_contract(), glm_contract(),
                        glm_rotary_contract()}) {
    const auto source = made(c, 1), target = made(c, 2);
    save_tensors(folder.path() / "ours", state_of(source->model()));
    EXPECT_EQ(load_pretrained(folder.path() / "ours", *target), hash_of(state_of(source->model()))) << c.twin;
  }
}

}  // namespace
}  // namespace assay
