#include "models/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace assay {

namespace {

void forbid_improbable(torch::Tensor& logits, double top_p) {
  const auto [sorted, order] = logits.sort(/*dim=*/0, /*descending=*/true);
  const torch::Tensor probability = sorted.softmax(0);
  // A token is forbidden when those before it have the share already, so the first never is.
  const torch::Tensor forbidden = (probability.cumsum(0) - probability) >= top_p;
  logits.index_put_({order.masked_select(forbidden)}, torch::tensor(-INFINITY, logits.options()));
}

int64_t choose(const torch::Tensor& logits, const std::vector<int64_t>& tokens, const GenerateOptions& options) {
  const torch::Tensor allowed = sampling_logits(logits, tokens, options);
  if (options.greedy) return allowed.argmax().item<int64_t>();
  return torch::multinomial(allowed.softmax(0), 1).item<int64_t>();
}

}  // namespace

torch::Tensor sampling_logits(const torch::Tensor& logits, const std::vector<int64_t>& before,
                              const GenerateOptions& options) {
  torch::Tensor x = logits.to(torch::kDouble).clone();
  if (options.repetition_penalty != 1 && !before.empty()) {
    const torch::Tensor seen = std::get<0>(at::_unique(torch::tensor(before)));
    const torch::Tensor values = x.index_select(0, seen);
    x.index_copy_(0, seen,
                  torch::where(values > 0, values / options.repetition_penalty, values * options.repetition_penalty));
  }
  x /= options.temperature;
  if (options.top_k > 0 && options.top_k < x.size(0)) {
    const torch::Tensor worst = std::get<0>(x.topk(options.top_k)).min();
    x.masked_fill_(x < worst, -INFINITY);
  }
  if (options.top_p < 1) forbid_improbable(x, options.top_p);
  return x;
}

std::vector<int64_t> generate(Decoder& decoder, const std::vector<int64_t>& prompt, const GenerateOptions& options,
                              const std::function<void(int64_t)>& on_token) {
  const torch::NoGradGuard no_grad;
  KvCache cache = decoder.make_cache(1);
  const auto length = static_cast<int64_t>(prompt.size());
  if (prompt.empty()) throw InvalidError("the prompt has no tokens");
  if (length > cache.capacity()) {
    throw InvalidError(fmt::format("the prompt has {} tokens; the model reads at most {}", length, cache.capacity()));
  }
  std::vector<int64_t> tokens = prompt;
  torch::Tensor next = torch::tensor(prompt).unsqueeze(0);
  while (static_cast<int64_t>(tokens.size()) - length < options.max_tokens) {
    torch::Tensor logits = decoder.decode(next, cache)[0];
    const auto num_made = static_cast<int64_t>(tokens.size()) - length;
    if (options.end_token && num_made < options.min_tokens) {
      logits = logits.clone();
      logits[*options.end_token] = -INFINITY;
    }
    const int64_t token = choose(logits, tokens, options);
    if (options.end_token && token == *options.end_token) break;
    tokens.push_back(token);
    if (on_token) on_token(token);
    if (cache.length() == cache.capacity()) break;
    next = torch::full({1, 1}, token, torch::kLong);
  }
  return {tokens.begin() + length, tokens.end()};
}

}  // namespace assay
