#include "data/gpt_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/console.h"
#include "base/error.h"
#include "base/hash.h"

namespace assay {

namespace {

constexpr int64_t kTokensToCheck = int64_t{1} << 28;  // before training; a larger file is checked sample by sample

}  // namespace

std::vector<int32_t> blend(const std::vector<double>& weights, int64_t count) {
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight > 0) || !std::isfinite(weight)) throw ConfigError("data_weights: every weight must be above 0");
    sum += weight;
  }
  // The k-th sample of a source may come from time k / share on and is due by (k + 1) / share. Of those that may come
  // the one due first is taken, which always meets every date.
  std::vector<int64_t> taken(weights.size(), 0);
  std::vector<int32_t> source(static_cast<size_t>(count));
  for (int64_t n = 0; n < count; ++n) {
    size_t best = 0;
    double best_due = INFINITY;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double share = weights[i] / sum;
      const auto k = static_cast<double>(taken[i]);
      const double due = (k + 1) / share;
      if (k >= share * static_cast<double>(n + 1)) continue;
      if (due < best_due) {
        best_due = due;
        best = i;
      }
    }
    source[static_cast<size_t>(n)] = static_cast<int32_t>(best);
    ++taken[best];
  }
  return source;
}

GptDataset::GptDataset(const Options& options) : options_(options) {
  if (!options_.notice) options_.notice = [](const std::string& text) { Console().warn(text); };
  if (options.sources.empty()) throw ConfigError("a gpt data set needs a data_prefix");
  if (options.index.sequence_length < 1) throw ConfigError("max_seq_len: must be at least 1");
  std::vector<double> weights;
  int64_t one_pass = 0;
  for (const Source& source : options.sources) {
    auto tokens = std::make_shared<const TokenFile>(source.prefix);
    check_tokens(*tokens);
    one_pass += samples_of_one_pass(*tokens, options.index);
    weights.push_back(source.weight);
    corpora_.push_back({std::move(tokens), {}});
  }
  GptIndex::Key key = options.index;
  if (corpora_.size() == 1) {
    corpora_[0].index = load_gpt_index(*corpora_[0].tokens, key, options_.notice);
    num_samples_ = corpora_[0].index.num_samples();
  } else {
    num_samples_ = key.num_samples > 0 ? key.num_samples : one_pass;
    corpus_of_ = blend(weights, num_samples_);
    std::vector<int64_t> taken(corpora_.size(), 0);
    for (const int32_t corpus : corpus_of_) sample_of_.push_back(taken[static_cast<size_t>(corpus)]++);
    for (size_t i = 0; i < corpora_.size(); ++i) {
      key.num_samples = std::max<int64_t>(1, taken[i]);
      corpora_[i].index = load_gpt_index(*corpora_[i].tokens, key, options_.notice);
    }
  }
  if (options.limit >= 0) num_samples_ = std::min(num_samples_, options.limit);
  if (num_samples_ < 1) {
    throw DataError(fmt::format("{}: no samples are left", corpora_[0].tokens->paths().ids.string()));
  }
  bytes_per_token_ = measure_bytes();
}

void GptDataset::check_tokens(const TokenFile& tokens) const {
  if (options_.vocab_size <= 0 || tokens.num_tokens() > kTokensToCheck) return;
  const int64_t largest = tokens.max_token();
  if (largest >= options_.vocab_size) {
    throw DataError(
        fmt::format("{}: holds token {}, but the model's vocabulary has {}: the text was encoded with another "
                    "tokenizer",
                    tokens.paths().ids.string(), largest, options_.vocab_size));
  }
}

void GptDataset::copy_sample(const Corpus& corpus, int64_t sample, int64_t* out) const {
  const GptIndex& index = corpus.index;
  const int64_t number = index.order[static_cast<size_t>(sample)];
  auto position = static_cast<size_t>(index.starts[static_cast<size_t>(2 * number)]);
  int64_t offset = index.starts[static_cast<size_t>(2 * number + 1)];
  int64_t missing = options_.index.sequence_length + 1;
  for (int64_t* to = out; missing > 0; ++position, offset = 0) {
    const int64_t document = index.documents[position];
    const int64_t now = std::min(missing, corpus.tokens->length_of(document) - offset);
    corpus.tokens->copy(corpus.tokens->begin_of(document) + offset, now, to);
    to += now;
    missing -= now;
  }
  const int64_t bound = options_.vocab_size > 0 ? options_.vocab_size : INT64_MAX;
  for (int64_t i = 0; i <= options_.index.sequence_length; ++i) {
    if (out[i] < 0 || out[i] >= bound) {
      throw DataError(fmt::format("{}: holds token {}, but the vocabulary has {}", corpus.tokens->paths().ids.string(),
                                  out[i], options_.vocab_size));
    }
  }
}

Batch GptDataset::gather(std::span<const int64_t> indices, int64_t) const {
  const auto count = static_cast<int64_t>(indices.size());
  const int64_t length = options_.index.sequence_length;
  torch::Tensor tokens = torch::empty({count, length}, torch::kLong);
  torch::Tensor labels = torch::empty({count, length}, torch::kLong);
  std::vector<int64_t> row(static_cast<size_t>(length) + 1);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)];
    ASSAY_CHECK(index >= 0 && index < num_samples_, fmt::format("sample {} of {}", index, num_samples_));
    const bool blended = !corpus_of_.empty();
    const auto at = static_cast<size_t>(index);
    copy_sample(corpora_[blended ? static_cast<size_t>(corpus_of_[at]) : 0], blended ? sample_of_[at] : index,
                row.data());
    std::copy(row.begin(), row.end() - 1, tokens.data_ptr<int64_t>() + i * length);
    std::copy(row.begin() + 1, row.end(), labels.data_ptr<int64_t>() + i * length);
  }
  Batch batch{{tokens, labels}, count};
  if (bytes_per_token_) batch.text_bytes = *bytes_per_token_ * static_cast<double>(count * length);
  return batch;
}

std::string GptDataset::hash() const {
  std::call_once(hash_once_, [&] {
    Sha256 hash;
    for (const Corpus& corpus : corpora_) {
      hash.update(sha256_file(corpus.tokens->paths().ids)).update(sha256_file(corpus.tokens->paths().index));
    }
    hash_ = hash.hex();
  });
  return hash_;
}

std::optional<double> GptDataset::measure_bytes() const {
  int64_t num_tokens = 0;
  int64_t num_bytes = 0;
  for (const Corpus& corpus : corpora_) {
    if (!corpus.tokens->num_bytes()) return std::nullopt;
    const DocumentRange range =
        split_documents(options_.index.split, options_.index.part, corpus.tokens->num_documents());
    num_tokens += corpus.tokens->begin_of(range.end) - corpus.tokens->begin_of(range.begin);
    for (int64_t i = range.begin; i < range.end; ++i) {
      num_bytes += corpus.tokens->num_bytes().value()[static_cast<size_t>(i)];
    }
  }
  return static_cast<double>(num_bytes) / static_cast<double>(num_tokens);
}

}  // namespace assay
