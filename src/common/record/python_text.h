// Values as Python prints them: str() and repr(), and the way back. What a Python logger writes into a line as text
// instead of JSON can be read and written exactly.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace assay {

// repr(): 'text', 1.0, True, None, {'a': [1]}. The strings "NaN", "Infinity" and "-Infinity", which stand for numbers
// in a record, become nan, inf and -inf. Code points that Unicode has not assigned are not escaped (Python escapes
// them).
std::string python_repr(const Json& value);
// repr() of a dictionary whose values are all strings, "NaN" among them.
std::string python_repr_of_strings(const Json& object);
// str(): as repr(), but a string is itself.
std::string python_str(const Json& value);
// format(value, ".3f") and its like: the forms that numbers are formatted with, [width][,][.precision][f|e|g|d|%].
// nullopt when the form is another one or does not fit the value.
std::optional<std::string> python_format(const Json& value, std::string_view spec);

// A literal of lists, tuples (read as lists), dictionaries, strings, numbers, True, False, None, nan, inf. nullopt when
// the text is anything else. Keys that are not strings become their str().
std::optional<Json> parse_python_literal(std::string_view text);

// What str() may have been called on: a number, a boolean, None, a list or a dictionary where the text reads as one,
// otherwise the text itself.
Json value_of_python_str(std::string_view text);

}  // namespace assay
