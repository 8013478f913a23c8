// Continuing texts: the cache changes nothing, sampling takes what its options say, beams find the best text.
#include "models/common/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../contract_case.h"
#include "base/error.h"
#include "models/registry.h"

namespace assay {
namespace {

const std::vector<int64_t> kPrompt = {5, 17, 3, 90, 41};

std::unique_ptr<Module> make_language_model(const ContractCase& c) {
  torch::manual_seed(3);
  auto module = make_module(Reader(c.section, "Model"));
  // New weights say much the same everywhere; larger ones have opinions, so that wrong ones would show.
  const torch::NoGradGuard no_grad;
  for (auto& item : module->model().named_parameters()) {
    const bool places = item.key().find("wpe") != std::string::npos;  // else the text would repeat one token
    if (item.value().dim() > 1) item.value().mul_(places ? 100 : 8);
  }
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

GenerateOptions greedy(int64_t max_tokens) { return {.strategy = DecodeStrategy::Greedy, .max_tokens = max_tokens}; }

TEST(Generate, GivesTheSameTokensAsWithoutTheCache) {
  for (const auto make : {gpt_contract, llama_contract}) {
    const ContractCase c = make();
    const auto module = make_language_model(c);
    auto& decoder = dynamic_cast<Decoder&>(module->model());
    const std::vector<int64_t> plain = greedy_without_cache(*module, 60);
    EXPECT_EQ(generate(decoder, kPrompt, greedy(60)).tokens, plain) << c.twin;
    EXPECT_GT(std::set(plain.begin(), plain.end()).size(), 3) << c.twin << ": too dull a text to tell";
    // To the last position and no further: 72 positions, and the token behind the last.
    EXPECT_EQ(generate(decoder, kPrompt, greedy(1000)).tokens.size(), 72 - kPrompt.size() + 1);
    EXPECT_THROW(generate(decoder, {}, {}), UsageError);
    EXPECT_THROW(generate(decoder, std::vector<int64_t>(73, 1), {}), UsageError);
    // One beam is the greedy way; so is the best token of one.
    EXPECT_EQ(generate(decoder, kPrompt, {.strategy = DecodeStrategy::Beam, .num_beams = 1, .max_tokens = 60}).tokens,
              plain);
    EXPECT_EQ(generate(decoder, kPrompt, {.top_k = 1, .max_tokens = 60}).tokens, plain);
  }
}

TEST(Generate, StopsAtTheEndToken) {
  const auto module = make_language_model(gpt_contract());
  auto& decoder = dynamic_cast<Decoder&>(module->model());
  const std::vector<int64_t> plain = greedy_without_cache(*module, 60);
  GenerateOptions options = greedy(60);
  options.end_token = plain[5];
  const auto first = std::find(plain.begin(), plain.end(), plain[5]);
  std::vector<int64_t> told;
  const Generated made = generate(decoder, kPrompt, options, [&](int64_t token) { told.push_back(token); });
  EXPECT_EQ(made.tokens, std::vector<int64_t>(plain.begin(), first)) << "the end is not part of the text";
  EXPECT_EQ(told, made.tokens);
  EXPECT_GT(made.first_token_s, 0);
  EXPECT_GE(made.seconds, made.first_token_s);
  options.min_tokens = 20;
  const std::vector<int64_t> longer = generate(decoder, kPrompt, options).tokens;
  EXPECT_GE(longer.size(), 20);
  EXPECT_EQ(std::count(longer.begin(), longer.begin() + 20, plain[5]), 0);
  // A vocabulary that is larger than the tokenizer's.
  options.num_tokens = 50;
  for (const int64_t token : generate(decoder, kPrompt, options).tokens) EXPECT_LT(token, 50);
}

TEST(Generate, DrawsSamplesFromTheGenerator) {
  const auto module = make_language_model(llama_contract());
  auto& decoder = dynamic_cast<Decoder&>(module->model());
  const auto sampled = [&](uint64_t seed) {
    torch::manual_seed(seed);
    return generate(decoder, kPrompt, {.temperature = 5, .max_tokens = 30}).tokens;
  };
  EXPECT_EQ(sampled(1), sampled(1));
  EXPECT_NE(sampled(1), sampled(2));
}

// With a beam for every first token nothing is lost: what is found is the best of all texts of two tokens.
TEST(Generate, FindsTheBestTextWithEnoughBeams) {
  const auto module = make_language_model(gpt_contract());
  const torch::NoGradGuard no_grad;
  const auto log_probabilities = [&](const std::vector<int64_t>& text) {
    return module->forward({torch::tensor(text).unsqueeze(0)})[0][-1].to(torch::kDouble).log_softmax(0);
  };
  const torch::Tensor first = log_probabilities(kPrompt);
  double best = -INFINITY;
  std::vector<int64_t> best_text;
  for (int64_t token = 0; token < 97; ++token) {
    std::vector<int64_t> text = kPrompt;
    text.push_back(token);
    const auto [second, place] = log_probabilities(text).max(0);
    const double found = (first[token] + second).item<double>();
    if (found <= best) continue;
    best = found;
    best_text = {token, place.item<int64_t>()};
  }
  auto& decoder = dynamic_cast<Decoder&>(module->model());
  const GenerateOptions options{.strategy = DecodeStrategy::Beam, .num_beams = 97, .max_tokens = 2};
  EXPECT_EQ(generate(decoder, kPrompt, options).tokens, best_text);
}

// Two tokens, 0 and the end: a text of one 0 has log probability log 0.4 + log 0.9, the empty one log 0.6.
class TwoTokens final : public Decoder {
 public:
  KvCache make_cache(int64_t batch) const override { return KvCache({.batch = batch, .capacity = 50}, torch::kFloat); }
  torch::Tensor decode(const torch::Tensor& tokens, KvCache& cache) override {
    const bool first = cache.length() == 0;
    cache.advance(tokens.size(1));
    return torch::tensor({first ? 0.4F : 0.1F, first ? 0.6F : 0.9F}).log().expand({tokens.size(0), 2});
  }
};

TEST(Generate, WeighsTextsThatEndInBeams) {
  TwoTokens decoder;
  GenerateOptions options{.strategy = DecodeStrategy::Beam, .num_beams = 2, .min_tokens = 0, .max_tokens = 10};
  options.end_token = 1;
  EXPECT_EQ(generate(decoder, {0}, options).tokens, std::vector<int64_t>{});
  options.min_tokens = 1;
  EXPECT_EQ(generate(decoder, {0}, options).tokens, std::vector<int64_t>{0});
  options.length_penalty = 5;  // log 0.036 / 2^5 is better than log 0.36, and so on
  EXPECT_EQ(generate(decoder, {0}, options).tokens.size(), 10);
}

TEST(Generate, ReadsItsSection) {
  const auto read = [](const Json& section) { return read_generation(Reader(section, "Generation")); };
  const GenerateOptions o = read({{"decode_strategy", "beam_search"}, {"num_beams", 3}, {"max_dec_len", 9}});
  EXPECT_EQ(o.strategy, DecodeStrategy::Beam);
  EXPECT_EQ(o.num_beams, 3);
  EXPECT_EQ(o.max_tokens, 9);
  EXPECT_EQ(read(Json::object()).top_k, 50);
  for (const auto& [key, value] : std::vector<std::pair<std::string, Json>>{{"decode_strategy", "best"},
                                                                            {"top_k", -1},
                                                                            {"top_p", 1.5},
                                                                            {"temperature", 0},
                                                                            {"repetition_penalty", -2},
                                                                            {"num_beams", 0},
                                                                            {"length_penalty", -1},
                                                                            {"max_dec_len", 0},
                                                                            {"no_such_key", 1}}) {
    EXPECT_THROW(read({{key, value}}), ConfigError) << key;
  }
}

TEST(Generate, GivesLogitsOfTheWholeByPieces) {
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

TEST(Generate, SamplesByTheDefinitions) {
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
  // One above 0 is divided: log 9 becomes log 3. What was not there before keeps its own.
  const torch::Tensor above = torch::tensor({9.0, 2.0, 0.25}, torch::kDouble).log();
  const torch::Tensor chosen = sampling_logits(above, {0, 2}, {.top_k = 0, .top_p = 1, .repetition_penalty = 2}).exp();
  expect_probabilities({chosen.data_ptr<double>(), chosen.data_ptr<double>() + 3}, {3, 2, 0.0625});
}

}  // namespace
}  // namespace assay
