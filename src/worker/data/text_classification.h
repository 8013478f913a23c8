// Labelled texts of a .jsonl file as rows of tokens: [CLS] text [SEP], cut or padded to one length.
//
// Shapes: B batch, T max_seq_len.
#pragma once

#include <filesystem>

#include "data/dataset.h"
#include "text/tokenizer.h"

namespace assay {

class TextClassification final : public Dataset {
 public:
  struct Options {
    std::filesystem::path file;       // {"text": "...", "label": 0} a line
    std::filesystem::path tokenizer;  // folder
    int64_t max_seq_len = 128;        // a longer text loses its end
    int64_t num_classes = 2;          // labels beyond it are an error
    int64_t vocab_size = 0;           // of the model; a larger tokenizer is an error; 0: not checked
    int64_t limit = -1;               // only the first so many lines; -1: all
  };
  // Throws ConfigError, or DataError naming file and line.
  explicit TextClassification(const Options& options);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  // {tokens [B, T], types [B, T] (all 0), mask [B, T] (1 for tokens, 0 for padding), labels [B]}, int64.
  Batch gather(std::span<const int64_t> indices, int64_t epoch) const override;
  std::string hash() const override { return hash_; }

 private:
  Options options_;
  int64_t padding_ = 0;
  std::vector<int32_t> tokens_;  // of all texts, special ones included
  std::vector<size_t> begins_;   // one more than texts
  std::vector<int64_t> labels_;
  std::string hash_;
};

// Loads a tokenizer for a model. Throws ConfigError when the model's vocabulary (0: unknown) is smaller than the
// tokenizer's.
std::unique_ptr<Tokenizer> tokenizer_for_model(const std::filesystem::path& folder, int64_t vocab_size);

}  // namespace assay
