// Samples for language models out of files of tokens (text/token_files.h), one corpus or several blended by weight.
//
// Shapes: B batch, T sequence_length.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "data/dataset.h"
#include "data/gpt_index.h"

namespace assay {

class GptDataset final : public Dataset {
 public:
  struct Source {
    std::filesystem::path prefix;  // of PREFIX_ids.npy and PREFIX_idx.npz
    double weight = 1;             // share of the samples, relative to the others' weights
  };
  struct Options {
    std::vector<Source> sources;
    GptIndex::Key index;                             // num_samples 0: what one pass over every source gives together
    int64_t vocab_size = 0;                          // tokens from it on are an error; 0: not checked
    int64_t limit = -1;                              // only the first so many samples; -1: all
    std::function<void(const std::string&)> notice;  // what is worth a line; null: standard error
  };
  // Throws ConfigError, or DataError naming the file.
  explicit GptDataset(const Options& options);

  int64_t size() const override { return num_samples_; }
  // {tokens [B, T], labels [B, T]}, int64; a label is the token that follows. Its text_bytes are the labels times
  // bytes_per_token().
  Batch gather(std::span<const int64_t> indices, int64_t epoch) const override;
  std::string hash() const override;
  // Mean bytes of text a token stands for, in the documents of the split; nothing when the files do not say. Turns a
  // loss a token into bits per byte.
  std::optional<double> bytes_per_token() const { return bytes_per_token_; }

 private:
  struct Corpus {
    std::shared_ptr<const TokenFile> tokens;
    GptIndex index;
  };
  void check_tokens(const TokenFile& tokens) const;
  std::optional<double> measure_bytes() const;
  void copy_sample(const Corpus& corpus, int64_t sample, int64_t* out) const;  // T + 1 tokens

  Options options_;
  std::vector<Corpus> corpora_;
  std::vector<int32_t> corpus_of_;  // of each sample; empty with one corpus
  std::vector<int64_t> sample_of_;  // its number in there
  int64_t num_samples_ = 0;
  std::optional<double> bytes_per_token_;
  mutable std::once_flag hash_once_;
  mutable std::string hash_;
};

// Which source each of `count` samples comes from. After any number n of samples, source i has been taken weight_i * n
// times, give or take less than one; weights are relative. Throws ConfigError for weights that are not positive.
std::vector<int32_t> blend(const std::vector<double>& weights, int64_t count);

}  // namespace assay
