// Samples of GLM out of files of tokens: stretches of a corpus with spans cut out, which a model infills. Which spans
// is a function of (seed, epoch, sample).
//
// Shapes: B batch, S source length, T max_seq_len.
#pragma once

#include <memory>
#include <vector>

#include "data/blank_tokens.h"
#include "data/gpt_dataset.h"
#include "data/random.h"

namespace assay {

class BlankInfilling final : public Dataset {
 public:
  struct Options {
    GptDataset::Options source;    // its sequence_length is S, its vocab_size without the tokens that mark blanks
    int64_t max_seq_len = 512;     // room for the text with blanks and the spans
    double mask_ratio = 0.15;      // share of the tokens that is cut out
    double max_mask_ratio = 0;     // above mask_ratio: the share is drawn between the two, a sample each
    double long_span_prob = 0;     // share of the samples that have one long span instead, up to the end
    double long_span_ratio = 0.5;  // share of a sample's tokens that a long span has at least
    double mean_span = 3;          // tokens; lengths are drawn from Poisson's distribution, 1 at least
    int64_t vocab_size = 0;        // of the model
    bool left_to_right = false;    // the stretches as they are, and as labels only the tokens of the same spans
    uint64_t seed = 0;
  };
  // Throws ConfigError, or DataError naming the file.
  explicit BlankInfilling(const Options& options);

  int64_t size() const override { return source_.size(); }
  // {tokens [B, T], positions [B, 2, T], text [B] (tokens of the text with blanks), labels [B, T]}; left to right:
  // {tokens [B, S], labels [B, S]}, a label being the token that follows. int64; -100 is not a label.
  Batch gather(std::span<const int64_t> indices, int64_t epoch) const override;
  std::string hash() const override { return source_.hash(); }

  struct Span {
    int64_t begin = 0;  // in the stretch; never 0
    int64_t length = 1;
  };
  // Of one sample, in the order of the text; no two touch.
  std::vector<Span> spans_of(int64_t sample, int64_t epoch) const;

 private:
  struct Row {
    int64_t *tokens, *positions, *span_positions, *labels;
  };
  std::vector<Span> draw_spans(KeyedRandom& random) const;
  Span draw_long_span(KeyedRandom& random) const;
  int64_t write_row(const int64_t* stretch, KeyedRandom& random, const Row& row) const;  // tokens of the text
  Batch gather_left_to_right(const torch::Tensor& stretches, std::span<const int64_t> indices, int64_t epoch) const;
  KeyedRandom random_of(int64_t sample, int64_t epoch) const;

  Options options_;
  BlankTokens blanks_;
  GptDataset source_;
};

}  // namespace assay
