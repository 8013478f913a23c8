#include "data/masked_language.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "data/text_classification.h"
#include "text/documents.h"
#include "text/sentences.h"

namespace assay {

namespace {

constexpr int64_t kNumSpecialsInRow = 3;  // [CLS] first [SEP] second [SEP]
constexpr int64_t kNotMasked = -100;      // what the loss skips

}  // namespace

MaskedLanguage::MaskedLanguage(const Options& options) : options_(options) {
  if (options.max_seq_len < kNumSpecialsInRow + 2) {
    throw ConfigError(fmt::format("max_seq_len {}: must be at least {}", options.max_seq_len, kNumSpecialsInRow + 2));
  }
  if (!(options.mask_prob > 0 && options.mask_prob < 1)) {
    throw ConfigError(fmt::format("mask_prob {}: must be above 0 and below 1", options.mask_prob));
  }
  read_documents();
  cut_into_chunks();
  if (options.limit >= 0 && size() > options.limit) chunks_.resize(static_cast<size_t>(options.limit));
  if (chunks_.empty()) throw DataError(fmt::format("{}: no samples in it", options.file.string()));
}

void MaskedLanguage::read_documents() {
  const auto tokenizer = tokenizer_for_model(options_.tokenizer, options_.vocab_size);
  const auto need = [&](SpecialToken which, const char* name) -> int64_t {
    const auto id = tokenizer->special(which);
    if (!id) throw DataError(fmt::format("{}: the tokenizer has no {}", options_.tokenizer.string(), name));
    return *id;
  };
  class_ = need(SpecialToken::Class, "[CLS]");
  separator_ = need(SpecialToken::Separator, "[SEP]");
  mask_ = need(SpecialToken::Mask, "[MASK]");
  padding_ = tokenizer->special(SpecialToken::Padding).value_or(0);
  is_special_.assign(static_cast<size_t>(tokenizer->vocabulary_size()), false);
  for (const auto& [text, id] : tokenizer->specials()) is_special_[static_cast<size_t>(id)] = true;
  if (std::find(is_special_.begin(), is_special_.end(), false) == is_special_.end()) {
    throw DataError(fmt::format("{}: the tokenizer has only special tokens", options_.tokenizer.string()));
  }
  DocumentReader reader(options_.file);
  begins_.push_back(0);
  while (const auto document = reader.next()) {
    const size_t first = begins_.size() - 1;
    for (const std::string_view sentence : sentences_of(document->text)) {
      tokenizer->encode(sentence, tokens_);
      if (tokens_.size() > begins_.back()) begins_.push_back(tokens_.size());
    }
    if (begins_.size() - 1 > first) documents_.push_back({first, begins_.size() - 1});
  }
  hash_ = sha256(sha256_file(options_.file) + tokenizer->hash());
}

// Sentences of a document until they fill a sample.
void MaskedLanguage::cut_into_chunks() {
  const auto room = static_cast<size_t>(options_.max_seq_len - kNumSpecialsInRow);
  for (size_t d = 0; d < documents_.size(); ++d) {
    for (size_t begin = documents_[d].begin; begin < documents_[d].end;) {
      size_t end = begin + 1;
      while (end < documents_[d].end && begins_[end] - begins_[begin] < room) ++end;
      chunks_.push_back({begin, end});
      document_of_.push_back(d);
      begin = end;
    }
  }
}

MaskedLanguage::Pair MaskedLanguage::make_pair(size_t chunk, KeyedRandom& random) const {
  const Range sentences = chunks_[chunk];
  const size_t count = sentences.end - sentences.begin;
  const size_t first_count = count < 2 ? 1 : 1 + random.below(count - 1);
  const Range first = tokens_of({sentences.begin, sentences.begin + first_count});
  Pair pair;
  pair.first.assign(tokens_.begin() + static_cast<std::ptrdiff_t>(first.begin),
                    tokens_.begin() + static_cast<std::ptrdiff_t>(first.end));
  pair.follows = count >= 2 && random.below(2) == 0;
  Range second = {sentences.begin + first_count, sentences.end};
  if (!pair.follows) {
    // Another document's sentences, as many as there is room for; with a single document, any of it.
    size_t other = documents_.size() == 1 ? 0 : random.below(documents_.size() - 1);
    if (documents_.size() > 1 && other >= document_of_[chunk]) ++other;
    const Range document = documents_[other];
    second.begin = document.begin + random.below(document.end - document.begin);
    second.end = second.begin + 1;
    const auto room = static_cast<size_t>(options_.max_seq_len - kNumSpecialsInRow);
    while (second.end < document.end && begins_[second.end] - begins_[second.begin] + pair.first.size() < room)
      ++second.end;
  }
  const Range tokens = tokens_of(second);
  pair.second.assign(tokens_.begin() + static_cast<std::ptrdiff_t>(tokens.begin),
                     tokens_.begin() + static_cast<std::ptrdiff_t>(tokens.end));
  return pair;
}

// The longer of the two loses tokens, at its front or its end, until both fit.
void MaskedLanguage::truncate(Pair& pair, KeyedRandom& random) const {
  const auto room = static_cast<size_t>(options_.max_seq_len - kNumSpecialsInRow);
  size_t cut[2][2] = {{0, 0}, {0, 0}};  // of each: front, end
  size_t size[2] = {pair.first.size(), pair.second.size()};
  while (size[0] + size[1] > room) {
    const size_t longer = size[0] > size[1] ? 0 : 1;
    ++cut[longer][random.below(2)];
    --size[longer];
  }
  std::vector<int32_t>* both[2] = {&pair.first, &pair.second};
  for (size_t i = 0; i < 2; ++i) {
    both[i]->erase(both[i]->end() - static_cast<std::ptrdiff_t>(cut[i][1]), both[i]->end());
    both[i]->erase(both[i]->begin(), both[i]->begin() + static_cast<std::ptrdiff_t>(cut[i][0]));
  }
}

bool MaskedLanguage::write_sample(size_t chunk, int64_t epoch, const Rows& rows) const {
  KeyedRandom random(options_.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(chunk));
  Pair pair = make_pair(chunk, random);
  truncate(pair, random);
  std::vector<int64_t> row = {class_};
  row.insert(row.end(), pair.first.begin(), pair.first.end());
  row.push_back(separator_);
  const size_t second_begin = row.size();
  row.insert(row.end(), pair.second.begin(), pair.second.end());
  row.push_back(separator_);

  std::vector<size_t> places;
  for (size_t i = 1; i + 1 < row.size(); ++i) {
    if (i + 1 != second_begin) places.push_back(i);
  }
  const double wanted = std::round(options_.mask_prob * static_cast<double>(places.size()));
  const size_t num_masked = std::clamp<size_t>(static_cast<size_t>(wanted), 1, places.size());
  for (size_t i = 0; i < num_masked; ++i) {
    std::swap(places[i], places[i + random.below(places.size() - i)]);
    int64_t& token = row[places[i]];
    rows.masked[places[i]] = token;
    const uint64_t fate = random.below(10);
    if (fate < 8) {
      token = mask_;
    } else if (fate == 8) {
      do token = static_cast<int64_t>(random.below(is_special_.size()));
      while (is_special_[static_cast<size_t>(token)]);
    }
  }
  std::copy(row.begin(), row.end(), rows.tokens);
  std::fill_n(rows.mask, row.size(), 1);
  std::fill(rows.types + second_begin, rows.types + row.size(), 1);
  return pair.follows;
}

Batch MaskedLanguage::gather(std::span<const int64_t> indices, int64_t epoch) const {
  const auto count = static_cast<int64_t>(indices.size());
  const int64_t length = options_.max_seq_len;
  torch::Tensor tokens = torch::full({count, length}, padding_, torch::kLong);
  torch::Tensor types = torch::zeros({count, length}, torch::kLong);
  torch::Tensor mask = torch::zeros({count, length}, torch::kLong);
  torch::Tensor masked = torch::full({count, length}, kNotMasked, torch::kLong);
  torch::Tensor next = torch::empty({count}, torch::kLong);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)];
    ASSAY_CHECK(index >= 0 && index < size(), fmt::format("sample {} of {}", index, size()));
    const Rows rows{.tokens = tokens.data_ptr<int64_t>() + i * length,
                    .types = types.data_ptr<int64_t>() + i * length,
                    .mask = mask.data_ptr<int64_t>() + i * length,
                    .masked = masked.data_ptr<int64_t>() + i * length};
    next.data_ptr<int64_t>()[i] = write_sample(static_cast<size_t>(index), epoch, rows) ? 0 : 1;
  }
  return {{tokens, types, mask, masked, next}, count};
}

}  // namespace assay
