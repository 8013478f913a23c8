#include "record/json_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace assay {

namespace {

constexpr char kHex[] = "0123456789abcdef";

void append_escape(std::string& out, uint32_t unit) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[(unit >> shift) & 0xF];
}

// The escapes that Python and nlohmann agree on; 0 when the byte has none of its own.
char short_escape(char c) {
  switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    case '\b': return 'b';
    case '\f': return 'f';
    default: return 0;
  }
}

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

// The code point that starts the text, which is valid UTF-8; `length` gets the bytes it takes.
uint32_t code_point(std::string_view text, size_t* length) {
  const auto lead = static_cast<unsigned char>(text[0]);
  *length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (*length == 1) return lead;
  uint32_t point = lead & (0x7Fu >> *length);
  for (size_t i = 1; i < *length; ++i) point = (point << 6) | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  return point;
}

// The general case, entered at the first byte that is not plain. `text` is valid UTF-8.
void append_escaped(std::string& out, std::string_view text, JsonStyle style) {
  while (!text.empty()) {
    size_t length = 1;
    const uint32_t point = code_point(text, &length);
    if (const char escape = short_escape(text[0])) {
      out += '\\';
      out += escape;
    } else if (point < 0x20 || (point >= 0x80 && style == JsonStyle::Python)) {
      if (point < 0x10000) {
        append_escape(out, point);
      } else {
        append_escape(out, 0xD800 + ((point - 0x10000) >> 10));
        append_escape(out, 0xDC00 + ((point - 0x10000) & 0x3FF));
      }
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
}

}  // namespace

void append_int(std::string& out, int64_t value) {
  std::array<char, 24> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), result.ptr);
}

void append_json_float(std::string& out, double value) {
  if (std::isfinite(value)) {
    append_python_float(out, value);
  } else {
    out += std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  }
}

void append_json_string(std::string& out, std::string_view text, JsonStyle style) {
  out += '"';
  size_t plain = 0;
  while (plain < text.size() && is_plain(text[plain])) ++plain;
  out += text.substr(0, plain);
  if (plain < text.size()) append_escaped(out, valid_utf8(text.substr(plain)), style);
  out += '"';
}

void append_json(std::string& out, const Json& value, JsonStyle style) {
  const bool python = style == JsonStyle::Python;
  bool first = true;
  const auto separate = [&] {
    if (!first) out += python ? ", " : ",";
    first = false;
  };
  switch (value.type()) {
    case Json::value_t::object:
      out += '{';
      for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) {
        separate();
        append_json_string(out, key, style);
        out += python ? ": " : ":";
        append_json(out, member, style);
      }
      out += '}';
      break;
    case Json::value_t::array:
      out += '[';
      for (const Json& item : value) {
        separate();
        append_json(out, item, style);
      }
      out += ']';
      break;
    case Json::value_t::string: append_json_string(out, value.get_ref<const std::string&>(), style); break;
    case Json::value_t::boolean: out += value.get<bool>() ? "true" : "false"; break;
    case Json::value_t::number_integer: append_int(out, value.get<int64_t>()); break;
    case Json::value_t::number_unsigned: out += std::to_string(value.get<uint64_t>()); break;
    case Json::value_t::number_float: append_json_float(out, value.get<double>()); break;
    case Json::value_t::null:
    case Json::value_t::binary:
    case Json::value_t::discarded: out += "null"; break;
  }
}

namespace {

// The first four characters after \u as a number, or nullopt.
std::optional<uint32_t> hex_unit(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  uint32_t unit = 0;
  const auto result = std::from_chars(text.data(), text.data() + 4, unit, 16);
  if (result.ec != std::errc() || result.ptr != text.data() + 4) return std::nullopt;
  return unit;
}

// Copies the escape that starts the text; returns how much of it was consumed.
size_t copy_escape(std::string& out, std::string_view text) {
  if (text.size() < 2 || text[1] != 'u') {
    out += text.substr(0, 2);
    return std::min<size_t>(2, text.size());
  }
  const std::optional<uint32_t> unit = hex_unit(text.substr(2));
  if (!unit || *unit < 0xD800 || *unit > 0xDFFF) {
    out += text.substr(0, 2);
    return 2;
  }
  const bool pair_follows = text.size() >= 12 && text[6] == '\\' && text[7] == 'u';
  const std::optional<uint32_t> second = pair_follows ? hex_unit(text.substr(8)) : std::nullopt;
  if (*unit < 0xDC00 && second && *second >= 0xDC00 && *second <= 0xDFFF) {
    out += text.substr(0, 12);
    return 12;
  }
  out += "\\ufffd";
  return 6;
}

// A number as it stands, or the infinity that Python would read; returns how much was consumed.
size_t copy_number(std::string& out, std::string_view text) {
  size_t end = 0;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '.' ||
                               text[end] == '+' || text[end] == '-')) {
    ++end;
  }
  const std::string word(text.substr(0, end));
  const bool digits = word.find_first_not_of("+-.0123456789eE") == std::string::npos;
  if (word == "NaN" || word == "Infinity" || word == "-Infinity") {
    append_json_string(out, word);
  } else if (digits && std::isinf(std::strtod(word.c_str(), nullptr))) {
    append_json_float(out, word[0] == '-' ? -HUGE_VAL : HUGE_VAL);
  } else {
    out += word;
  }
  return std::max<size_t>(end, 1);
}

// The same text as valid JSON where it was only Python's JSON; anything else is left for the parser to refuse.
std::string repair(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  bool in_string = false;
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (in_string && c == '\\') {
      i += copy_escape(out, text.substr(i));
    } else if (!in_string && (std::isalnum(static_cast<unsigned char>(c)) || c == '-')) {
      i += copy_number(out, text.substr(i));
    } else {
      if (c == '"') in_string = !in_string;
      out += c;
      ++i;
    }
  }
  return out;
}

}  // namespace

Json parse_python_json(std::string_view text, const std::string& where) {
  try {
    return parse_json(text, where);
  } catch (const DataError&) {
    return parse_json(repair(valid_utf8(text)), where);
  }
}

}  // namespace assay
