#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "text/byte_bpe.h"
#include "text/sentence_piece.h"
#include "text/word_piece.h"

namespace assay {

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  encode(text, ids);
  return ids;
}

std::vector<int32_t> Tokenizer::encode_with_specials(std::string_view text) const {
  std::vector<int32_t> ids;
  while (!text.empty()) {
    size_t first = text.size();
    const std::pair<const std::string, int32_t>* next = nullptr;
    for (const auto& special : specials()) {
      const size_t at = text.find(special.first);
      // Of two that begin at one place the longer is meant.
      if (at < first || (next && at == first && special.first.size() > next->first.size())) {
        first = at;
        next = &special;
      }
    }
    encode(text.substr(0, first), ids);
    if (!next) break;
    ids.push_back(next->second);
    text.remove_prefix(first + next->first.size());
  }
  return ids;
}

std::vector<int32_t> Tokenizer::encode_first(std::string_view text, size_t num_tokens) const {
  constexpr size_t kBytesPerToken = 4;  // a first guess; too little costs another round, too much some time
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  std::vector<int32_t> ids;
  while (!text.empty() && ids.size() < num_tokens) {
    size_t cut = text.size();
    if (words_are_apart()) {
      cut = std::min(cut, kBytesPerToken * (num_tokens - ids.size()) + 1);
      while (cut + 1 < text.size() && !(text[cut] == ' ' && is_letter(text[cut - 1]) && is_letter(text[cut + 1])))
        ++cut;
      if (cut + 1 >= text.size()) cut = text.size();
    }
    encode(text.substr(0, cut), ids);
    text.remove_prefix(cut);
  }
  if (ids.size() > num_tokens) ids.resize(num_tokens);
  return ids;
}

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw DataError(fmt::format("{}: no such folder; a tokenizer is a folder that assay data tokenizer train writes",
                                folder.string()));
  }
  const bool bpe = fs::exists(folder / "vocab.json") && fs::exists(folder / "merges.txt");
  const bool word_piece = fs::exists(folder / "vocab.txt");
  std::vector<fs::path> models;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".model") models.push_back(entry.path());
  }
  const size_t kinds = (bpe ? 1 : 0) + (word_piece ? 1 : 0) + models.size();
  if (kinds > 1) {
    throw DataError(fmt::format("{}: files of {} tokenizers; leave those of one", folder.string(), kinds));
  }
  if (bpe) return ByteBpe::load(folder);
  if (word_piece) return WordPiece::load(folder);
  if (!models.empty()) return SentencePiece::load(models[0]);
  throw DataError(
      fmt::format("{}: no tokenizer in it: neither vocab.json and merges.txt (GPT-2), nor vocab.txt (BERT), "
                  "nor a *.model (SentencePiece)",
                  folder.string()));
}

}  // namespace assay
