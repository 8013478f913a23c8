// How BERT cuts a text into words before WordPiece: control characters and bytes that are no UTF-8 go, blanks separate,
// punctuation and CJK ideographs are words of their own; with `lower`, letters become small and lose their accents.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Lower case goes character by character, as in the published fast tokenizers: no special small sigma ends a word.
std::vector<std::string> basic_tokens(std::string_view text, bool lower);

}  // namespace assay
