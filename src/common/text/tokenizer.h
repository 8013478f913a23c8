// Text to numbers and back. Tokenizers are immutable: one may be used from several threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// What a special token is for. The names differ between tokenizers: the end is <|endoftext|>, [SEP] or </s>.
enum class SpecialToken { Unknown, Padding, Class, Separator, Mask, End };

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string kind() const = 0;  // "bpe", "wordpiece", "sentencepiece"

  // Appends the tokens of a text; no special token is added, and one that stands in the text is ordinary text, so that
  // a document cannot forge the end of a document.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  std::vector<int32_t> encode(std::string_view text) const;
  // The first tokens of encode(text), at most so many, without reading all of a long text.
  std::vector<int32_t> encode_first(std::string_view text, size_t num_tokens) const;
  // The tokens of a text in which special tokens become what they say.
  std::vector<int32_t> encode_with_specials(std::string_view text) const;
  // Throws DataError for a number that is no token.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;

  virtual int32_t vocabulary_size() const = 0;
  // Nothing when this tokenizer has no such token.
  virtual std::optional<int32_t> special(SpecialToken which) const = 0;
  // Every special token by the text it is written as.
  virtual const std::map<std::string, int32_t>& specials() const = 0;

  // Writes the files that load_tokenizer reads; the folder is created. Throws InfrastructureError.
  virtual void save(const std::filesystem::path& folder) const = 0;
  // SHA-256 over what decides its results.
  virtual std::string hash() const = 0;

 protected:
  // Whether a text may be cut before a blank between two letters and its parts encoded one by one.
  virtual bool words_are_apart() const { return true; }
};

// Recognises the kind by the files in the folder: vocab.json and merges.txt (GPT-2), vocab.txt (BERT), or one *.model
// (SentencePiece). Throws DataError naming the file, and the line where there are lines.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder);

}  // namespace assay
