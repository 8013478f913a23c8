// WordPiece as BERT does it: words (basic_tokens.h) are cut greedily into the longest pieces of the vocabulary, those
// inside a word written with "##"; a word that cannot be cut is [UNK]. Reads and writes BERT's vocab.txt.
#pragma once

#include <array>
#include <string>
#include <unordered_map>

#include "text/learn_merges.h"
#include "text/tokenizer.h"

namespace assay {

class WordPiece final : public Tokenizer {
 public:
  struct Options {
    bool lower = true;            // do_lower_case of tokenizer_config.json
    size_t max_word_chars = 100;  // a longer word is [UNK]
  };
  // `tokens` by number, among them [UNK].
  WordPiece(std::vector<std::string> tokens, const Options& options);
  static std::unique_ptr<WordPiece> load(const std::filesystem::path& folder);

  std::string kind() const override { return "wordpiece"; }
  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  // Words with blanks between them; padding, [CLS] and [SEP] are left out.
  std::string decode(std::span<const int32_t> ids) const override;
  int32_t vocabulary_size() const override { return static_cast<int32_t>(tokens_.size()); }
  std::optional<int32_t> special(SpecialToken which) const override;
  const std::map<std::string, int32_t>& specials() const override { return specials_; }
  void save(const std::filesystem::path& folder) const override;
  std::string hash() const override;
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Numbers = std::unordered_map<std::string, int32_t, Hash, std::equal_to<>>;
  void encode_word(std::string_view word, std::vector<int32_t>& ids) const;

  std::vector<std::string> tokens_;
  Options options_;
  Numbers first_;       // pieces that begin a word
  Numbers inside_;      // pieces inside a word, without "##"
  size_t longest_ = 0;  // bytes of the longest piece
  std::map<std::string, int32_t> specials_;
  int32_t unknown_ = 0;
};

// Learns a vocabulary from texts. Feed every document, then train.
class WordPieceTrainer {
 public:
  explicit WordPieceTrainer(const WordPiece::Options& options = {}) : options_(options) {}
  void add(std::string_view document);
  // [PAD], [UNK], [CLS], [SEP], [MASK], the letters, alone and inside words, then pieces, the most frequent first. Rare
  // letters are left out when there are more than a thousand or they would fill half of the vocabulary. Throws
  // UsageError for a size below 32, InvalidError when there is no word.
  std::unique_ptr<WordPiece> train(int32_t vocabulary_size, const TextProgress& progress = nullptr) const;

 private:
  WordPiece::Options options_;
  std::unordered_map<std::string, int64_t> counts_;
};

}  // namespace assay
