// Text of others (names, reasons, log lines) made harmless: valid UTF-8, one line, nothing that moves a cursor, changes
// a colour or turns the reading direction. Every renderer passes foreign text through here before its own escaping.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Escape sequences are removed; line ends and tabs become blanks; other control characters, direction overrides and
// code points that XML forbids become U+FFFD. Longer than kMaxPlainBytes: cut, with an ellipsis.
inline constexpr size_t kMaxPlainBytes = 4000;
std::string plain_text(std::string_view text);

// A line of a log: as plain_text, and of a progress bar redrawn with carriage returns only the last state.
std::string plain_log_line(std::string_view line);

// Lines of at most `width` columns, broken at blanks, inside words only where a word alone is too wide. Expects plain
// text. Never empty: "" gives one empty line.
std::vector<std::string> wrap_text(std::string_view text, size_t width);
// The text itself, or its beginning and an ellipsis, in at most `width` columns. Expects plain text.
std::string clip_text(std::string_view text, size_t width);

}  // namespace assay
