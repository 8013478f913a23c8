// Byte-level byte-pair encoding as GPT-2 does it: the text is cut into pieces (gpt2_pieces.h), the bytes of a piece are
// joined by learned merges, lowest rank first. Every byte is a token, so any bytes round trip. Reads and writes
// GPT-2's vocab.json and merges.txt.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <utility>

#include "text/learn_merges.h"
#include "text/tokenizer.h"

namespace assay {

inline constexpr const char* kEndOfText = "<|endoftext|>";

class ByteBpe final : public Tokenizer {
 public:
  struct Parts {
    std::vector<std::string> tokens;                  // by number; raw bytes, not GPT-2's letters for them
    std::vector<std::pair<int32_t, int32_t>> merges;  // by rank
    std::vector<int32_t> products;                    // what each merge gives
    std::map<std::string, int32_t> specials;          // tokens that no text encodes to
  };
  // `tokens` holds every byte as a token of its own.
  explicit ByteBpe(Parts parts);
  static std::unique_ptr<ByteBpe> load(const std::filesystem::path& folder);

  std::string kind() const override { return "bpe"; }
  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  int32_t vocabulary_size() const override { return static_cast<int32_t>(parts_.tokens.size()); }
  std::optional<int32_t> special(SpecialToken which) const override;
  const std::map<std::string, int32_t>& specials() const override { return parts_.specials; }
  void save(const std::filesystem::path& folder) const override;
  std::string hash() const override;

  const std::vector<std::pair<int32_t, int32_t>>& merges() const { return parts_.merges; }

 private:
  struct Merge {
    uint32_t rank;
    int32_t product;
  };
  // Pairs to merges, open addressing: a lookup is one cache line more often than not.
  class MergeTable {
   public:
    void build(const Parts& parts);
    const Merge* find(int32_t left, int32_t right) const;

   private:
    struct Slot {
      uint64_t key;
      Merge merge;
    };
    std::vector<Slot> slots_;
    size_t mask_ = 0;
  };
  // Whole pieces that are one token: most of a text, found without merging.
  class WordTable {
   public:
    void build(const std::vector<std::string>& tokens, const std::vector<bool>& is_word);
    int32_t find(std::string_view piece, const std::vector<std::string>& tokens) const;  // -1: not there

   private:
    struct Slot {
      uint32_t hash;
      int32_t token;
    };
    std::vector<Slot> slots_;
    size_t mask_ = 0;
  };

  void encode_piece(std::string_view piece, std::vector<int32_t>& ids) const;
  void merge_short(std::string_view piece, std::vector<int32_t>& ids) const;  // quadratic, without allocation
  void merge_long(std::string_view piece, std::vector<int32_t>& ids) const;   // with a queue

  Parts parts_;
  std::array<int32_t, 256> byte_tokens_{};
  MergeTable merge_table_;
  WordTable word_table_;
};

// Learns a vocabulary from texts. Feed every document, then train.
class ByteBpeTrainer {
 public:
  void add(std::string_view document);
  // `vocabulary_size` counts the 256 bytes and <|endoftext|>, which is the last token; the result is smaller when the
  // texts hold no more pairs that occur twice. Throws UsageError for a size below 257.
  std::unique_ptr<ByteBpe> train(int32_t vocabulary_size, const TextProgress& progress = nullptr) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> counts_;
};

}  // namespace assay
