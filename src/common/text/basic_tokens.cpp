#include "text/basic_tokens.h"

#include "text/unicode.h"

namespace assay {

namespace {

bool is_punctuation(uint32_t c) {
  if (c < 0x80) return c > ' ' && c < 0x7f && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  return class_of(c) == CharClass::Punctuation;
}

// Line and paragraph separators are no spaces to Unicode, but to whoever splits a text.
bool is_blank(uint32_t c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029 ||
         (c >= 0x80 && class_of(c) == CharClass::SpaceSeparator);
}

bool is_dropped(uint32_t c) { return c == kNoCodePoint || c == 0 || c == 0xfffd || class_of(c) == CharClass::Control; }

class Words {
 public:
  explicit Words(bool lower) : lower_(lower) {}

  void add(uint32_t c) {
    if (is_blank(c)) return end();
    if (is_dropped(c)) return;
    const bool apart = is_cjk_ideograph(c);
    if (apart) end();
    if (c < 0x80 || !lower_) {
      lower_ ? append_folded(character_, c) : append_utf8(character_, c);
      place(c);
    } else {
      append_folded(character_, c);
      place_folded();
    }
    character_.clear();
    if (apart) end();
  }

  void end() {
    if (!word_.empty()) words_.push_back(std::move(word_));
    word_.clear();
  }

  std::vector<std::string> take() {
    end();
    return std::move(words_);
  }

 private:
  void place(uint32_t c) {
    if (!is_punctuation(c)) {
      word_ += character_;
      return;
    }
    end();
    words_.push_back(character_);
  }

  // What a character folds to may be none or several, and punctuation where it was none.
  void place_folded() {
    const std::string folded = std::move(character_);
    for (size_t at = 0; at < folded.size();) {
      const CodePoint c = code_point_at(folded, at);
      character_ = folded.substr(at, c.num_bytes);
      place(c.value);
      at += c.num_bytes;
    }
  }

  bool lower_;
  std::string character_;
  std::string word_;
  std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> basic_tokens(std::string_view text, bool lower) {
  Words words(lower);
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    words.add(c.value);
    at += c.num_bytes;
  }
  return words.take();
}

}  // namespace assay
