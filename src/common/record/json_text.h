// JSON values as text, appended without intermediate copies. Two styles: ours (compact, UTF-8) and the one that
// Python's json.dumps has by default, which every dialect of a Python logger inherits. Knows nothing of records.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace assay {

enum class JsonStyle {
  Compact,  // {"a":1,"b":"é"}
  Python,   // {"a": 1, "b": "\u00e9"}
};

// Finite numbers in Python's shortest form; non-finite ones as json_number() gives them, so that the text stays valid.
// Bytes that are not UTF-8 become U+FFFD.
void append_json(std::string& out, const Json& value, JsonStyle style = JsonStyle::Compact);
void append_json_string(std::string& out, std::string_view text, JsonStyle style = JsonStyle::Compact);
void append_json_float(std::string& out, double value);
void append_int(std::string& out, int64_t value);

// Reads what Python's json.dumps writes, including what is not JSON: NaN, Infinity and -Infinity (which become the
// strings of json_number()), lone surrogates and bytes that are not UTF-8 (which become U+FFFD), and numbers too large
// for a double (which become infinite, as in Python). Throws DataError naming `where`.
Json parse_python_json(std::string_view text, const std::string& where);

}  // namespace assay
