// generate: continues a text with trained weights.
#include "models/common/generate.h"

#include <fmt/format.h>
#include <torch/utils.h>

#include <cstdio>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "commands.h"
#include "engine/loop/record_observer.h"
#include "record/keys.h"
#include "text/tokenizer.h"

namespace assay {

namespace {

std::unique_ptr<Tokenizer> tokenizer_of(const Job& job) {
  if (!job.arguments().tokenizer.empty()) return load_tokenizer(job.arguments().tokenizer);
  if (!job.config().data.path) {
    throw UsageError(
        fmt::format("case {} has no data with a tokenizer; give one with --tokenizer", job.config().case_name));
  }
  return load_tokenizer(*job.config().data.path / "tokenizer");
}

std::vector<int64_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& text, int64_t vocab_size) {
  std::vector<int64_t> tokens;
  for (const int32_t token : tokenizer.encode_with_specials(text)) tokens.push_back(token);
  // Nothing: the model begins a document of its own, as behind the end of another.
  const auto end = tokenizer.special(SpecialToken::End);
  if (tokens.empty() && end) tokens.push_back(*end);
  for (const int64_t token : tokens) {
    if (token < vocab_size) continue;
    throw DataError(
        fmt::format("the tokenizer gives token {}, but the model's vocabulary has {}: the model was trained "
                    "with another tokenizer",
                    token, vocab_size));
  }
  return tokens;
}

// Prints the prompt, as soon as something follows it, and what is new of a growing text. Some tokenizers decode a token
// only together with its neighbours.
class TextStream {
 public:
  TextStream(const Tokenizer& tokenizer, const std::string& prompt_text, const std::vector<int64_t>& prompt)
      : tokenizer_(tokenizer),
        unshown_(prompt_text),
        tokens_(prompt.begin(), prompt.end()),
        shown_(tokenizer.decode(tokens_)) {}
  void add(int64_t token) {
    tokens_.push_back(static_cast<int32_t>(token));
    const std::string whole = tokenizer_.decode(tokens_);
    if (whole.size() <= shown_.size() || !whole.starts_with(shown_)) return;
    fmt::print("{}{}", unshown_, whole.substr(shown_.size()));
    std::fflush(stdout);
    unshown_.clear();
    shown_ = whole;
  }
  void finish() const {
    fmt::print("{}\n", unshown_);
    std::fflush(stdout);
  }

 private:
  const Tokenizer& tokenizer_;
  std::string unshown_;  // the prompt
  std::vector<int32_t> tokens_;
  std::string shown_;
};

std::string text_of(const Tokenizer& tokenizer, const std::vector<int64_t>& prompt, const std::vector<int64_t>& made) {
  std::vector<int32_t> tokens(prompt.begin(), prompt.end());
  const std::string before = tokenizer.decode(tokens);
  tokens.insert(tokens.end(), made.begin(), made.end());
  const std::string whole = tokenizer.decode(tokens);
  return whole.starts_with(before) ? whole.substr(before.size()) : whole;
}

Json described(const Generated& made, const std::string& text) {
  const auto rate = made.tokens_per_s();
  return {{"text", valid_utf8(text)},
          {"tokens", made.tokens},
          {"first_token_s", made.first_token_s},
          {"tokens_per_s", rate ? Json(*rate) : Json(nullptr)}};
}

void print_times(const Generated& made) {
  const auto rate = made.tokens_per_s();
  fmt::print(stderr, "[generate] {} tokens, first after {:.1f} ms{}\n", made.tokens.size(), made.first_token_s * 1e3,
             rate ? fmt::format(", then {:.1f} tokens/s", *rate) : "");
}

}  // namespace

void run_generate(Job& job) {
  GenerateOptions options = read_generation(job.config().section("Generation"));
  const std::string prompt_text = read_file(job.arguments().prompt);
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(job);
  std::string weights_hash;
  const std::unique_ptr<Module> module = job.load_published(weights_hash);
  auto* decoder = dynamic_cast<Decoder*>(&module->model());
  if (!decoder) job.config().section("Model").fail("name", "is a model that does not continue texts; gpt and llama do");
  module->model().eval();
  const std::vector<int64_t> prompt = prompt_tokens(*tokenizer, prompt_text, module->input_spec().at(0).num_values);
  options.num_tokens = tokenizer->vocabulary_size();
  if (const auto end = tokenizer->special(SpecialToken::End)) options.end_token = *end;
  write_event(job.records(), keys::kInitEnd);

  torch::manual_seed(static_cast<uint64_t>(job.options().seed));
  Json texts = Json::array();
  for (int64_t i = 0; i < options.num_texts; ++i) {
    TextStream stream(*tokenizer, prompt_text, prompt);
    const Generated made = generate(*decoder, prompt, options, [&](int64_t token) {
      if (!job.arguments().json) stream.add(token);
    });
    texts.push_back(described(made, text_of(*tokenizer, prompt, made.tokens)));
    if (job.arguments().json) continue;
    stream.finish();
    print_times(made);
  }
  const Json result = {{"prompt", valid_utf8(prompt_text)},
                       {"prompt_tokens", prompt.size()},
                       {"texts", std::move(texts)},
                       {keys::kSeed, job.options().seed},
                       {"weights", weights_hash}};
  if (job.arguments().json) fmt::print("{}\n", to_pretty(result));
}

}  // namespace assay
