#include <fmt/format.h>

#include "base/error.h"
#include "text/byte_bpe.h"
#include "text/byte_letters.h"
#include "text/gpt2_pieces.h"

namespace assay {

namespace {

// A longer piece is no word of any language, but a blob whose pairs would be counted again at every merge.
constexpr size_t kMaxPiece = 256;

}  // namespace

void ByteBpeTrainer::add(std::string_view document) {
  Gpt2Pieces pieces(document);
  while (auto piece = pieces.next()) {
    while (!piece->empty()) {
      const std::string_view part = piece->substr(0, kMaxPiece);
      piece->remove_prefix(part.size());
      const auto found = counts_.find(part);
      if (found != counts_.end()) {
        ++found->second;
      } else {
        counts_.emplace(std::string(part), 1);
      }
    }
  }
}

std::unique_ptr<ByteBpe> ByteBpeTrainer::train(int32_t vocabulary_size, const TextProgress& progress) const {
  if (vocabulary_size < 257) {
    throw UsageError(
        fmt::format("a vocabulary of {}: at least 257, for the 256 bytes and {}", vocabulary_size, kEndOfText));
  }
  ByteBpe::Parts parts;
  std::array<int32_t, 256> numbers{};
  for (const uint8_t byte : bytes_in_gpt2_order()) {
    numbers[byte] = static_cast<int32_t>(parts.tokens.size());
    parts.tokens.emplace_back(1, static_cast<char>(byte));
  }
  std::vector<CountedWord> words;
  words.reserve(counts_.size());
  for (const auto& [text, count] : counts_) {
    CountedWord word{.symbols = {}, .count = count};
    for (const char c : text) word.symbols.push_back(numbers[static_cast<uint8_t>(c)]);
    words.push_back(std::move(word));
  }
  const MergeLearner learner{
      .max_pieces = vocabulary_size - 1,
      .join = [](std::string_view a, std::string_view b) { return std::string(a) + std::string(b); },
      .progress = progress};
  parts.merges = learner.learn(std::move(words), parts.tokens);
  std::unordered_map<std::string, int32_t> known;
  for (size_t i = 0; i < parts.tokens.size(); ++i) known.emplace(parts.tokens[i], static_cast<int32_t>(i));
  for (const auto& [left, right] : parts.merges) {
    parts.products.push_back(
        known.at(parts.tokens[static_cast<size_t>(left)] + parts.tokens[static_cast<size_t>(right)]));
  }
  parts.specials[kEndOfText] = static_cast<int32_t>(parts.tokens.size());
  parts.tokens.emplace_back(kEndOfText);
  return std::make_unique<ByteBpe>(std::move(parts));
}

}  // namespace assay
