#include "data/text_classification.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "text/documents.h"

namespace assay {

std::unique_ptr<Tokenizer> tokenizer_for_model(const std::filesystem::path& folder, int64_t vocab_size) {
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(folder);
  if (vocab_size > 0 && tokenizer->vocabulary_size() > vocab_size) {
    throw ConfigError(fmt::format("Model.vocab_size {}: the tokenizer in {} has {} tokens", vocab_size, folder.string(),
                                  tokenizer->vocabulary_size()));
  }
  return tokenizer;
}

TextClassification::TextClassification(const Options& options) : options_(options) {
  const auto tokenizer = tokenizer_for_model(options.tokenizer, options.vocab_size);
  const auto first = tokenizer->special(SpecialToken::Class), last = tokenizer->special(SpecialToken::Separator);
  const int64_t room = options.max_seq_len - (first ? 1 : 0) - (last ? 1 : 0);
  if (room < 1) throw ConfigError(fmt::format("max_seq_len {}: leaves no room for text", options.max_seq_len));
  padding_ = tokenizer->special(SpecialToken::Padding).value_or(0);

  DocumentReader reader(options.file);
  begins_.push_back(0);
  while (options.limit < 0 || size() < options.limit) {
    const auto document = reader.next();
    if (!document) break;
    const auto fail = [&](const std::string& what) {
      throw DataError(fmt::format("{}:{}: {}", options.file.string(), document->line, what));
    };
    if (!document->label) fail("no label; a line is {\"text\": \"...\", \"label\": 0}");
    if (*document->label >= options.num_classes) {
      fail(fmt::format("label {}, but there are {} classes", *document->label, options.num_classes));
    }
    if (first) tokens_.push_back(*first);
    const std::vector<int32_t> ids = tokenizer->encode_first(document->text, static_cast<size_t>(room));
    tokens_.insert(tokens_.end(), ids.begin(), ids.end());
    if (last) tokens_.push_back(*last);
    begins_.push_back(tokens_.size());
    labels_.push_back(*document->label);
  }
  if (labels_.empty()) throw DataError(fmt::format("{}: no samples in it", options.file.string()));
  hash_ = sha256(sha256_file(options.file) + tokenizer->hash());
}

Batch TextClassification::gather(std::span<const int64_t> indices, int64_t) const {
  const auto count = static_cast<int64_t>(indices.size());
  const int64_t length = options_.max_seq_len;
  torch::Tensor tokens = torch::full({count, length}, padding_, torch::kLong);
  torch::Tensor types = torch::zeros({count, length}, torch::kLong);
  torch::Tensor mask = torch::zeros({count, length}, torch::kLong);
  torch::Tensor labels = torch::empty({count}, torch::kLong);
  for (int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<size_t>(indices[static_cast<size_t>(i)]);
    ASSAY_CHECK(index < labels_.size(), fmt::format("sample {} of {}", index, labels_.size()));
    const auto row = std::span(tokens_).subspan(begins_[index], begins_[index + 1] - begins_[index]);
    std::copy(row.begin(), row.end(), tokens.data_ptr<int64_t>() + i * length);
    std::fill_n(mask.data_ptr<int64_t>() + i * length, row.size(), 1);
    labels.data_ptr<int64_t>()[i] = labels_[index];
  }
  return {{tokens, types, mask, labels}, count};
}

}  // namespace assay
