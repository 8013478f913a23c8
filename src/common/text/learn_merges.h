// Byte-pair learning: which neighbours to join, most frequent first. Knows neither bytes nor letters; byte-level BPE
// and WordPiece both train with it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

// Called now and then with how far the work is; may throw to end it.
using TextProgress = std::function<void(int64_t done, int64_t total)>;

struct CountedWord {
  std::vector<int32_t> symbols;  // numbers of pieces
  int64_t count = 0;
};

struct MergeLearner {
  int32_t max_pieces = 0;  // ends with so many
  int64_t min_count = 2;   // or when no pair occurs so often
  // The text of two joined pieces. Pairs that give the same text give the same piece.
  std::function<std::string(std::string_view left, std::string_view right)> join;
  TextProgress progress = nullptr;

  // Adds the learned pieces to `pieces`; returns the pairs in the order learned. Ties go to the pair of the smaller
  // numbers, so the result is a function of the arguments alone.
  std::vector<std::pair<int32_t, int32_t>> learn(std::vector<CountedWord> words,
                                                 std::vector<std::string>& pieces) const;
};

}  // namespace assay
