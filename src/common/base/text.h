// Small text tools that the standard library lacks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string lower(std::string_view text);

// The candidate with the smallest edit distance, if it is close enough to be a likely typo.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);
// " (did you mean 'x'?)" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// yes/true/t/y/1 and no/false/f/n/0, any case; anything else is nullopt.
std::optional<bool> parse_bool(std::string_view text);
// The whole text must be a number; no blanks around it.
std::optional<long long> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);

// The text that Python's repr() gives a float: the shortest digits that read back equal, "1e-05", "1.0", "nan", "inf".
std::string python_float(double value);
// The same, appended: the fast path of the record writers.
void append_python_float(std::string& out, double value);

// One argument as a POSIX shell would need it; for display only, never for execution.
std::string shell_quote(std::string_view argument);
std::string shell_line(const std::vector<std::string>& argv);

// Replaces bytes that are not UTF-8 by U+FFFD: text of others on its way into JSON, HTML and terminals.
std::string valid_utf8(std::string_view text);
// How many columns a terminal gives the text (CJK is two wide); escape sequences are not expected.
size_t display_width(std::string_view text);

}  // namespace assay
