// The tokens that mark blanks: the last of a model's vocabulary, behind those of the texts.
#pragma once

#include <cstdint>

namespace assay {

inline constexpr int64_t kNumBlankTokens = 3;

struct BlankTokens {
  explicit BlankTokens(int64_t vocab_size) : mask(vocab_size - 3), start(vocab_size - 2), end(vocab_size - 1) {}
  int64_t mask;   // stands for a span in the text
  int64_t start;  // before the tokens of a span
  int64_t end;    // what is predicted behind them
};

}  // namespace assay
