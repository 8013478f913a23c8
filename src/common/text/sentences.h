// Sentences of a text, for models that learn what follows what.
#pragma once

#include <string_view>
#include <vector>

namespace assay {

// Cuts at line ends, and after . ! ? (with quotes or brackets behind) before a blank, and after the full-width ones.
// Nothing is lost but blanks around; empty ones are left out.
std::vector<std::string_view> sentences_of(std::string_view text);

}  // namespace assay
