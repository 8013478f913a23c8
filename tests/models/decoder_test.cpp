// Continuing texts: the cache changes nothing, and sampling takes what its options say.
#include "models/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "contract_case.h"
#include "models/registry.h"

namespace assay {
namespace {

const std::vector<int64_t> kPrompt = {5, 17, 3, 90, 41};

std::unique_ptr<Module> make_language_model(const ContractCase& c) {
  torch::manual_seed(3);
  auto module = make_module(Reader(c.section, "Model"));
  // New weights say much the same everywhere; larger ones have opinions, so that wrong ones would show.
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : module->model().parameters()) parameter.mul_(parameter.dim() > 1 ? 8 : 1);
  module->model().eval();
  return module;
}

// The plain way: the whole text through the network for every token.
std::vector<int64_t> greedy_without_cache(Module& module, int64_t count) {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> tokens = kPrompt;
  for (int64_t i = 0; i < count; ++i) {
    const torch::Tensor logits = module.forward({torch::tensor(tokens).unsqueeze(0)});
    tokens.push_back(logits[0][-1].argmax().item<int64_t>());
  }
  return {tokens.begin() + static_cast<int64_t>(kPrompt.size()), tokens.end()};
}

TEST(Decoders, GiveTheSameTokensAsWithoutTheCache) {
  for (const auto make : {gpt_contract, llama_contract}) {
    const ContractCase c = make();
    const auto module = make_language_model(c);
    auto& decoder = dynamic_cast<Decoder&>(module->model());
    const std::vector<int64_t> plain = greedy_without_cache(*module, 60);
    EXPECT_EQ(generate(decoder, kPrompt, {.greedy = true, .max_tokens = 60}), plain) << c.twin;
    EXPECT_GT(std::set(plain.begin(), plain.end()).size(), 3) << c.twin << ": too dull a text to tell";
    // To the last position and no further: 72 positions, and the token behind the last.
    EXPECT_EQ(generate(decoder, kPrompt, {.greedy = true, .max_tokens = 1000}).size(), 72 - kPrompt.size() + 1);
    EXPECT_THROW(generate(decoder, {}, {}), InvalidError);
    EXPECT_THROW(generate(decoder, std::vector<int64_t>(73, 1), {}), InvalidError);
    // The end is not part of the text.
    const auto first = std::find(plain.begin(), plain.end(), plain[5]);
    EXPECT_EQ(generate(decoder, kPrompt, {.greedy = true, .max_tokens = 60, .end_token = plain[5]}),
              std::vector<int64_t>(plain.begin(), first));
    // Sampling follows the generator.
    const auto sampled = [&](uint64_t seed) {
      torch::manual_seed(seed);
      return generate(decoder, kPrompt, {.temperature = 5, .max_tokens = 30});
    };
    EXPECT_EQ(sampled(1), sampled(1));
    EXPECT_NE(sampled(1), sampled(2));
    EXPECT_EQ(generate(decoder, kPrompt, {.top_k = 1, .max_tokens = 60}), plain);
  }
}

TEST(Decoders, LogitsOfPiecesAreThoseOfTheWhole) {
  for (const auto make : {gpt_contract, llama_contract}) {
    const ContractCase c = make();
    const auto module = make_language_model(c);
    auto& decoder = dynamic_cast<Decoder&>(module->model());
    const torch::NoGradGuard no_grad;
    const torch::Tensor tokens = c.batch(0).tensors[0].narrow(1, 0, 40);
    KvCache cache = decoder.make_cache(tokens.size(0));
    torch::Tensor last;
    for (const auto& piece : tokens.split_with_sizes({7, 1, 1, 20, 11}, 1)) last = decoder.decode(piece, cache);
    const torch::Tensor whole = module->forward({tokens}).select(1, -1);
    EXPECT_LT((last - whole).abs().max().item<double>(), 1e-4 * whole.abs().max().item<double>()) << c.twin;
  }
}

std::vector<double> probabilities(const GenerateOptions& options, const std::vector<int64_t>& before = {}) {
  // Probabilities 0.5, 0.25, 0.15, 0.1.
  const torch::Tensor logits = torch::tensor({0.15, 0.5, 0.1, 0.25}, torch::kDouble).log();
  const torch::Tensor chosen = sampling_logits(logits, before, options).softmax(0);
  return {chosen.data_ptr<double>(), chosen.data_ptr<double>() + 4};
}

void expect_probabilities(const std::vector<double>& found, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-9) << i;
}

TEST(Decoders, SamplingByTheDefinitions) {
  const GenerateOptions all{.top_k = 0, .top_p = 1};
  expect_probabilities(probabilities(all), {0.15, 0.5, 0.1, 0.25});
  expect_probabilities(probabilities({.top_k = 2, .top_p = 1}), {0, 2.0 / 3, 0, 1.0 / 3});
  expect_probabilities(probabilities({.top_k = 0, .top_p = 0.6}), {0, 2.0 / 3, 0, 1.0 / 3});
  expect_probabilities(probabilities({.top_k = 0, .top_p = 0}), {0, 1, 0, 0});
  // The squares of the probabilities, made to sum to 1.
  const double sum = 0.0225 + 0.25 + 0.01 + 0.0625;
  expect_probabilities(probabilities({.top_k = 0, .top_p = 1, .temperature = 0.5}),
                       {0.0225 / sum, 0.25 / sum, 0.01 / sum, 0.0625 / sum});
  // A logit below 0 is multiplied: the square of the probability.
  const double rest = 0.15 + 0.25 + 0.1 + 0.25;
  expect_probabilities(probabilities({.top_k = 0, .top_p = 1, .repetition_penalty = 2}, {1, 1}),
                       {0.15 / rest, 0.25 / rest, 0.1 / rest, 0.25 / rest});
}

}  // namespace
}  // namespace assay
