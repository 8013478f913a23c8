#include "text/gpt2_pieces.h"

#include "text/unicode.h"

namespace assay {

Gpt2Pieces::Char Gpt2Pieces::char_at(size_t at) const {
  const auto byte = static_cast<unsigned char>(text_[at]);
  if (byte < 0x80) {
    const unsigned char small = byte | 0x20;
    if (small >= 'a' && small <= 'z') return {Kind::Letter, 1};
    if (byte == ' ' || (byte >= '\t' && byte <= '\r')) return {Kind::Space, 1};
    return {byte >= '0' && byte <= '9' ? Kind::Number : Kind::Other, 1};
  }
  const CodePoint c = code_point_at(text_, at);
  if (c.value == kNoCodePoint) return {Kind::Other, 1};
  if (is_white_space(c.value)) return {Kind::Space, c.num_bytes};
  const CharClass name = class_of(c.value);
  const Kind kind = name == CharClass::Letter ? Kind::Letter : name == CharClass::Number ? Kind::Number : Kind::Other;
  return {kind, c.num_bytes};
}

size_t Gpt2Pieces::contraction_at(size_t at) const {
  for (const std::string_view word : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text_.substr(at, word.size()) == word) return word.size();
  }
  return 0;
}

size_t Gpt2Pieces::end_of_run(size_t at, Kind kind) const {
  while (at < text_.size()) {
    const Char c = char_at(at);
    if (c.kind != kind) break;
    at += c.num_bytes;
  }
  return at;
}

// All the spaces at the end of the text; else all but the last, which goes with the word behind it; a single one alone.
size_t Gpt2Pieces::end_of_spaces(size_t at) const {
  size_t last = at;
  size_t end = at;
  while (end < text_.size()) {
    const Char c = char_at(end);
    if (c.kind != Kind::Space) break;
    last = end;
    end += c.num_bytes;
  }
  return end == text_.size() || last == at ? end : last;
}

std::optional<std::string_view> Gpt2Pieces::next() {
  if (at_ >= text_.size()) return std::nullopt;
  const size_t begin = at_;
  size_t end = text_[begin] == '\'' ? begin + contraction_at(begin) : begin;
  if (end == begin) {
    const Char first = char_at(begin);
    if (first.kind != Kind::Space) {
      end = end_of_run(begin + first.num_bytes, first.kind);
    } else if (text_[begin] == ' ' && begin + 1 < text_.size() && char_at(begin + 1).kind != Kind::Space) {
      end = end_of_run(begin + 1, char_at(begin + 1).kind);
    } else {
      end = end_of_spaces(begin);
    }
  }
  at_ = end;
  return text_.substr(begin, end - begin);
}

}  // namespace assay
