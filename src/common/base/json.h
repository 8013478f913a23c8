// JSON with keys in the order they were written. Numbers that JSON cannot hold stay visible as strings.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace assay {

using Json = nlohmann::ordered_json;

// A double as JSON: NaN and the infinities become "NaN", "Infinity", "-Infinity".
Json json_number(double value);
// The way back; also accepts plain numbers. Throws DataError for anything else.
double number_of(const Json& value);
bool is_number(const Json& value);

// Parses text; the error names `where`, the line and the column. Strings may hold any Unicode; depth is limited.
Json parse_json(std::string_view text, const std::string& where);
Json read_json_file(const std::filesystem::path& path);

// One line, no blanks after commas; bytes that are not UTF-8 are replaced, never thrown at.
std::string to_line(const Json& value);
std::string to_pretty(const Json& value);

}  // namespace assay
