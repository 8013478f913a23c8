// What tokenizers ask about characters: UTF-8, general classes, white space, and the folding that BERT applies. The
// tables are generated (script/unicode-tables), so that no Unicode library has to be loaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

// The general categories that tokenizers distinguish: L*, N*, P*, Mn, Zs, Cc and Cf; everything else is Other.
enum class CharClass : uint8_t { Other, Letter, Number, Punctuation, NonspacingMark, SpaceSeparator, Control };

inline constexpr uint32_t kNoCodePoint = 0xffffffff;

struct CodePoint {
  uint32_t value = kNoCodePoint;  // kNoCodePoint: this byte begins no valid UTF-8
  uint32_t num_bytes = 1;
};

// The character that begins at text[at]; `at` must be inside. Overlong forms and surrogates are not valid.
CodePoint code_point_at(std::string_view text, size_t at);
void append_utf8(std::string& out, uint32_t code_point);
size_t num_code_points(std::string_view text);  // an invalid byte counts as one

CharClass class_of(uint32_t code_point);
// The property White_Space, what \s matches.
bool is_white_space(uint32_t code_point);
// The ideographs that BERT sets apart as words of their own.
bool is_cjk_ideograph(uint32_t code_point);

// Appends the lower case of a character, decomposed (NFD) and without nonspacing marks: "É" gives "e". Marks that are
// not nonspacing keep their order.
void append_folded(std::string& out, uint32_t code_point);

}  // namespace assay
