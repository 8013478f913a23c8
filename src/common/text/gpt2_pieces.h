// How GPT-2 cuts a text before it merges bytes:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// The pieces are the whole text, in order. Bytes that are not UTF-8 count as neither letter, number nor space.
#pragma once

#include <optional>
#include <string_view>

namespace assay {

class Gpt2Pieces {
 public:
  explicit Gpt2Pieces(std::string_view text) : text_(text) {}
  // The next piece; nothing at the end of the text.
  std::optional<std::string_view> next();

 private:
  enum class Kind : unsigned char { Letter, Number, Space, Other };
  struct Char {
    Kind kind;
    size_t num_bytes;
  };
  Char char_at(size_t at) const;
  size_t contraction_at(size_t at) const;  // its length; 0 for none
  size_t end_of_run(size_t at, Kind kind) const;
  size_t end_of_spaces(size_t at) const;

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace assay
