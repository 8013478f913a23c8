#include "models/common/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/signals.h"
#include "base/time.h"

namespace assay {

namespace {

void forbid_improbable(torch::Tensor& logits, double top_p) {
  const auto [sorted, order] = logits.sort(/*dim=*/0, /*descending=*/true);
  const torch::Tensor probability = sorted.softmax(0);
  // A token is forbidden when those before it have the share already; the first never is.
  const torch::Tensor forbidden = (probability.cumsum(0) - probability) >= top_p;
  forbidden[0] = false;
  logits.index_put_({order.masked_select(forbidden)}, torch::tensor(-INFINITY, logits.options()));
}

// In double, with the penalty of tokens that were there.
torch::Tensor penalised(const torch::Tensor& logits, const std::vector<int64_t>& before, double penalty) {
  torch::Tensor x = logits.to(torch::kDouble).clone();
  if (penalty == 1 || before.empty()) return x;
  const torch::Tensor seen = std::get<0>(at::_unique(torch::tensor(before)));
  const torch::Tensor values = x.index_select(0, seen);
  x.index_copy_(0, seen, torch::where(values > 0, values / penalty, values * penalty));
  return x;
}

void stop_if_asked() {
  if (stop_signal() != 0) throw InterruptedError("interrupted");
}

// One prompt being continued: what all strategies share.
class Continuation {
 public:
  Continuation(Decoder& decoder, const std::vector<int64_t>& prompt, const GenerateOptions& options)
      : decoder_(decoder), options_(options), cache_(decoder.make_cache(1)) {
    if (prompt.empty()) throw UsageError("the prompt has no tokens");
    const auto length = static_cast<int64_t>(prompt.size());
    if (length > cache_.capacity()) {
      throw UsageError(fmt::format("the prompt has {} tokens; the model reads at most {}", length, cache_.capacity()));
    }
  }

  // Logits [rows, V] behind new tokens [rows, T]; the end token is impossible while it is too early.
  torch::Tensor read(const torch::Tensor& tokens, int64_t num_made) {
    stop_if_asked();
    torch::Tensor logits = decoder_.decode(tokens, cache_);
    if (options_.end_token && num_made < options_.min_tokens) {
      logits = logits.clone();
      logits.select(1, *options_.end_token).fill_(-INFINITY);
    }
    return options_.num_tokens > 0 ? logits.narrow(1, 0, std::min(options_.num_tokens, logits.size(1))) : logits;
  }
  bool is_full() const { return cache_.length() == cache_.capacity(); }
  KvCache& cache() { return cache_; }

 private:
  Decoder& decoder_;
  const GenerateOptions& options_;
  KvCache cache_;
};

Generated sample(Decoder& decoder, const std::vector<int64_t>& prompt, const GenerateOptions& options,
                 const std::function<void(int64_t)>& on_token) {
  const Stopwatch watch;
  Generated generated;
  Continuation text(decoder, prompt, options);
  std::vector<int64_t> tokens = prompt;
  torch::Tensor next = torch::tensor(prompt).unsqueeze(0);
  while (static_cast<int64_t>(generated.tokens.size()) < options.max_tokens) {
    const torch::Tensor logits = text.read(next, static_cast<int64_t>(generated.tokens.size()))[0];
    int64_t token = 0;
    if (options.strategy == DecodeStrategy::Greedy) {
      token = penalised(logits, tokens, options.repetition_penalty).argmax().item<int64_t>();
    } else {
      token = torch::multinomial(sampling_logits(logits, tokens, options).softmax(0), 1).item<int64_t>();
    }
    if (generated.tokens.empty()) generated.first_token_s = watch.seconds();
    if (options.end_token && token == *options.end_token) break;
    tokens.push_back(token);
    generated.tokens.push_back(token);
    if (on_token) on_token(token);
    if (text.is_full()) break;
    next = torch::full({1, 1}, token, torch::kLong);
  }
  generated.seconds = watch.seconds();
  return generated;
}

// A text that beam search follows.
struct Beam {
  std::vector<int64_t> tokens;  // prompt included
  double log_probability = 0;   // of the continuation
  int64_t row = 0;              // of the cache, that it continues
};

class BeamSearch {
 public:
  BeamSearch(Decoder& decoder, const std::vector<int64_t>& prompt, const GenerateOptions& options)
      : options_(options), num_prompt_(static_cast<int64_t>(prompt.size())), text_(decoder, prompt, options) {
    beams_ = {{prompt, 0, 0}};
  }

  Generated run() {
    const Stopwatch watch;
    Generated generated;
    torch::Tensor next = torch::tensor(beams_[0].tokens).unsqueeze(0);
    for (int64_t num_made = 0; num_made < options_.max_tokens; ++num_made) {
      const torch::Tensor logits = text_.read(next, num_made);
      if (num_made == 0) generated.first_token_s = watch.seconds();
      advance(logits);
      if (beams_.empty() || nothing_better_can_come() || text_.is_full()) break;
      std::vector<int64_t> rows, last;
      for (const Beam& beam : beams_) {
        rows.push_back(beam.row);
        last.push_back(beam.tokens.back());
      }
      text_.cache().select(torch::tensor(rows));
      next = torch::tensor(last).unsqueeze(1);
    }
    for (const Beam& beam : beams_) finish(beam);
    const Beam& best = *std::max_element(finished_.begin(), finished_.end(),
                                         [&](const Beam& a, const Beam& b) { return score(a) < score(b); });
    generated.tokens.assign(best.tokens.begin() + num_prompt_, best.tokens.end());
    generated.seconds = watch.seconds();
    return generated;
  }

 private:
  double score(const Beam& beam) const {
    const auto length = static_cast<double>(static_cast<int64_t>(beam.tokens.size()) - num_prompt_);
    return beam.log_probability / std::pow(std::max(length, 1.0), options_.length_penalty);
  }

  void finish(const Beam& beam) { finished_.push_back(beam); }

  // The best continuations of all beams; those that end are finished. Twice as many are looked at, so that enough are
  // left when all the best ones end.
  void advance(const torch::Tensor& logits) {
    std::vector<torch::Tensor> rows;
    for (size_t i = 0; i < beams_.size(); ++i) {
      const torch::Tensor row =
          penalised(logits[static_cast<int64_t>(i)], beams_[i].tokens, options_.repetition_penalty);
      rows.push_back(row.log_softmax(0) + beams_[i].log_probability);
    }
    const torch::Tensor all = torch::cat(rows);
    const auto [values, places] = all.topk(std::min(2 * options_.num_beams, all.size(0)));
    std::vector<Beam> next;
    for (int64_t i = 0; i < values.size(0) && static_cast<int64_t>(next.size()) < options_.num_beams; ++i) {
      const double log_probability = values[i].item<double>();
      if (std::isinf(log_probability)) break;
      const int64_t row = places[i].item<int64_t>() / logits.size(1),
                    token = places[i].item<int64_t>() % logits.size(1);
      Beam beam{beams_[static_cast<size_t>(row)].tokens, log_probability, row};
      if (options_.end_token && token == *options_.end_token) {
        if (i < options_.num_beams) finish(beam);
        continue;
      }
      beam.tokens.push_back(token);
      next.push_back(std::move(beam));
    }
    beams_ = std::move(next);
  }

  // A text only becomes less probable as it grows; divided by a power of its length it may still become better, so then
  // the search goes on to the end.
  bool nothing_better_can_come() const {
    if (static_cast<int64_t>(finished_.size()) < options_.num_beams) return false;
    if (options_.length_penalty > 0) return false;
    std::vector<double> scores;
    for (const Beam& beam : finished_) scores.push_back(score(beam));
    return *std::max_element(scores.begin(), scores.end()) >= score(beams_.front());
  }

  const GenerateOptions& options_;
  int64_t num_prompt_;
  Continuation text_;
  std::vector<Beam> beams_;  // the most probable first
  std::vector<Beam> finished_;
};

}  // namespace

GenerateOptions read_generation(Reader section) {
  GenerateOptions o;
  const auto at_least = [&](const char* key, int64_t fallback, int64_t least) {
    const int64_t value = section.get_int(key, fallback);
    if (value < least) section.fail(key, fmt::format("must be at least {}", least));
    return value;
  };
  const auto positive = [&](const char* key, double fallback) {
    const double value = section.get_double(key, fallback);
    if (!(value > 0)) section.fail(key, "must be above 0");
    return value;
  };
  const std::string strategy =
      section.get_choice("decode_strategy", {"sampling", "greedy_search", "beam_search"}, "sampling");
  o.strategy = strategy == "sampling"        ? DecodeStrategy::Sampling
               : strategy == "greedy_search" ? DecodeStrategy::Greedy
                                             : DecodeStrategy::Beam;
  o.top_k = at_least("top_k", o.top_k, 0);
  o.top_p = section.get_double("top_p", o.top_p);
  if (!(o.top_p >= 0 && o.top_p <= 1)) section.fail("top_p", "must be from 0 to 1");
  o.temperature = positive("temperature", o.temperature);
  o.repetition_penalty = positive("repetition_penalty", o.repetition_penalty);
  o.num_beams = at_least("num_beams", o.num_beams, 1);
  o.length_penalty = section.get_double("length_penalty", o.length_penalty);
  if (!(o.length_penalty >= 0)) section.fail("length_penalty", "must be at least 0");
  o.min_tokens = at_least("min_dec_len", o.min_tokens, 0);
  o.max_tokens = at_least("max_dec_len", o.max_tokens, 1);
  o.num_texts = at_least("num_return_sequences", o.num_texts, 1);
  section.finish();
  return o;
}

std::optional<double> Generated::tokens_per_s() const {
  if (tokens.size() < 2 || seconds <= first_token_s) return std::nullopt;
  return static_cast<double>(tokens.size() - 1) / (seconds - first_token_s);
}

torch::Tensor sampling_logits(const torch::Tensor& logits, const std::vector<int64_t>& before,
                              const GenerateOptions& options) {
  torch::Tensor x = penalised(logits, before, options.repetition_penalty);
  x /= options.temperature;
  if (options.top_k > 0 && options.top_k < x.size(0)) {
    const torch::Tensor worst = std::get<0>(x.topk(options.top_k)).min();
    x.masked_fill_(x < worst, -INFINITY);
  }
  if (options.top_p < 1) forbid_improbable(x, options.top_p);
  return x;
}

Generated generate(Decoder& decoder, const std::vector<int64_t>& prompt, const GenerateOptions& options,
                   const std::function<void(int64_t)>& on_token) {
  const torch::NoGradGuard no_grad;
  if (options.strategy != DecodeStrategy::Beam) return sample(decoder, prompt, options, on_token);
  Generated generated = BeamSearch(decoder, prompt, options).run();
  if (on_token) {
    for (const int64_t token : generated.tokens) on_token(token);
  }
  return generated;
}

}  // namespace assay
