// Strings of Python sources: escapes, and what str() and % make of values that literals can have. What Python prints
// into logs is record/python_text.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/value.h"

namespace assay {

inline constexpr size_t kMaxPythonString = 1 << 16;

// What a string literal stands for, from the text between its quotes; nullopt for escapes that need a table of
// Unicode's names, for those that no text can hold, and for longer results.
std::optional<std::string> literal_unescape(std::string_view text, bool raw);

// str() of None, booleans, numbers and strings; nullopt for containers.
std::optional<std::string> literal_str(const Value& value);

// `format % arguments` for %s %d %i %f %e %g %x %% with flags, width and precision; nullopt when a directive is
// another one, does not fit its argument, or the numbers differ.
std::optional<std::string> literal_percent(std::string_view format, const std::vector<Value>& arguments);

// format(value, spec) for the specs that numbers and texts commonly have: [0][width][.precision][d s f e g x %].
std::optional<std::string> literal_format(const Value& value, std::string_view spec);

}  // namespace assay
