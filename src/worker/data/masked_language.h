// BERT's pre-training samples out of documents: two stretches of sentences, the second being what follows the first or
// something else, and tokens hidden in both. What is hidden, and which second stretch comes, is a function of (seed,
// epoch, sample).
//
// Shapes: B batch, T max_seq_len.
#pragma once

#include <filesystem>
#include <vector>

#include "data/dataset.h"
#include "data/random.h"

namespace assay {

class MaskedLanguage final : public Dataset {
 public:
  struct Options {
    std::filesystem::path file;       // {"text": "..."} a line
    std::filesystem::path tokenizer;  // folder; it needs [CLS], [SEP] and [MASK]
    int64_t max_seq_len = 128;
    double mask_prob = 0.15;  // share of tokens to predict: of them 80 % become [MASK], 10 % another token, 10 % stay
    int64_t vocab_size = 0;   // of the model; a larger tokenizer is an error; 0: not checked
    int64_t limit = -1;       // only the first so many samples; -1: all
    uint64_t seed = 0;
  };
  // Throws ConfigError, or DataError naming the file.
  explicit MaskedLanguage(const Options& options);

  int64_t size() const override { return static_cast<int64_t>(chunks_.size()); }
  // {tokens [B, T], types [B, T], mask [B, T], masked [B, T] (the hidden token, -100 elsewhere), next [B] (0: the
  // second stretch follows the first, 1: it does not)}, int64.
  Batch gather(std::span<const int64_t> indices, int64_t epoch) const override;
  std::string hash() const override { return hash_; }

 private:
  struct Range {  // of sentences or tokens
    size_t begin = 0, end = 0;
  };
  struct Rows {
    int64_t *tokens, *types, *mask, *masked;
  };
  struct Pair {
    std::vector<int32_t> first, second;
    bool follows = true;
  };
  void read_documents();
  void cut_into_chunks();
  Range tokens_of(Range sentences) const { return {begins_[sentences.begin], begins_[sentences.end]}; }
  Pair make_pair(size_t chunk, KeyedRandom& random) const;
  void truncate(Pair& pair, KeyedRandom& random) const;
  bool write_sample(size_t chunk, int64_t epoch, const Rows& rows) const;  // whether the second stretch follows

  Options options_;
  int64_t class_ = 0, separator_ = 0, mask_ = 0, padding_ = 0;
  std::vector<bool> is_special_;     // by token
  std::vector<int32_t> tokens_;      // of all sentences
  std::vector<size_t> begins_;       // of sentences in tokens_; one more than sentences
  std::vector<Range> documents_;     // as sentences
  std::vector<Range> chunks_;        // a sample's sentences, all of one document
  std::vector<size_t> document_of_;  // a chunk's document
  std::string hash_;
};

}  // namespace assay
