// SentencePiece, through its library. Models with a piece for every byte and without normalisation, as our training
// makes them, give any bytes back: what the library would change - bytes that are no UTF-8, and its own sign for a
// blank - is encoded byte by byte.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "text/learn_merges.h"
#include "text/sentence_piece_api.h"
#include "text/tokenizer.h"

namespace assay {

class SentencePiece final : public Tokenizer {
 public:
  // Throws DataError beginning with `where` for bytes that are no model; InfrastructureError when the library is
  // missing.
  SentencePiece(std::string model, const std::string& where);
  ~SentencePiece() override;
  static std::unique_ptr<SentencePiece> load(const std::filesystem::path& path);

  std::string kind() const override { return "sentencepiece"; }
  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  // Special tokens are left out.
  std::string decode(std::span<const int32_t> ids) const override;
  int32_t vocabulary_size() const override { return static_cast<int32_t>(pieces_.size()); }
  std::optional<int32_t> special(SpecialToken which) const override;
  const std::map<std::string, int32_t>& specials() const override { return specials_; }
  void save(const std::filesystem::path& folder) const override;  // tokenizer.model
  std::string hash() const override;

 protected:
  bool words_are_apart() const override { return false; }

 private:
  struct Piece {
    std::string text;  // what it stands for: blanks, and bytes, as themselves
    SentencePieceKind kind;
  };
  void encode_valid(std::string_view text, std::vector<int32_t>& ids) const;

  const SentencePieceApi& api_;
  std::string bytes_;
  void* model_ = nullptr;
  std::vector<Piece> pieces_;
  std::array<int32_t, 256> byte_pieces_{};
  bool has_bytes_ = false;     // a piece for every byte
  bool begins_blank_ = false;  // the model puts a blank before every text
  std::map<std::string, int32_t> specials_;
};

// Learns a unigram model from texts. Feed every document, then train.
class SentencePieceTrainer {
 public:
  void add(std::string_view document);
  // <unk>, <s>, </s>, <pad>, [CLS], [SEP], [MASK], the 256 bytes, then pieces. Throws UsageError for a size that has no
  // room for the bytes and letters.
  std::unique_ptr<SentencePiece> train(int32_t vocabulary_size, const TextProgress& progress = nullptr) const;

 private:
  std::vector<std::string> lines_;
};

}  // namespace assay
