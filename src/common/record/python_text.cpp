#include "record/python_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text.h"

namespace assay {

namespace {

// Assigned code points above ASCII that str.isprintable() denies: separators, format and control characters, private
// use. From the Unicode categories Zs, Zl, Zp, Cc, Cf, Co.
constexpr std::array<std::pair<uint32_t, uint32_t>, 31> kUnprintable{{
    {0x7F, 0xA0},         {0xAD, 0xAD},       {0x600, 0x605},     {0x61C, 0x61C},     {0x6DD, 0x6DD},
    {0x70F, 0x70F},       {0x890, 0x891},     {0x8E2, 0x8E2},     {0x1680, 0x1680},   {0x180E, 0x180E},
    {0x2000, 0x200F},     {0x2028, 0x202F},   {0x205F, 0x206F},   {0x3000, 0x3000},   {0xD800, 0xF8FF},
    {0xFEFF, 0xFEFF},     {0xFFF9, 0xFFFB},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x13438},
    {0x1BCA0, 0x1BCA3},   {0x1D173, 0x1D17A}, {0xE0001, 0xE0001}, {0xE0020, 0xE007F}, {0xF0000, 0xFFFFD},
    {0x100000, 0x10FFFD}, {0xFFFE, 0xFFFF},   {0x1FFFE, 0x1FFFF}, {0x2FFFE, 0x2FFFF}, {0xFFFFE, 0xFFFFF},
    {0x10FFFE, 0x10FFFF},
}};

bool printable(uint32_t point) {
  if (point < 0x7F) return point >= 0x20;
  return std::none_of(kUnprintable.begin(), kUnprintable.end(),
                      [&](const auto& range) { return point >= range.first && point <= range.second; });
}

uint32_t next_point(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  uint32_t point = length == 1 ? lead : lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) point = (point << 6) | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  text.remove_prefix(length);
  return point;
}

void append_repr(std::string& out, std::string_view input) {
  const std::string checked = valid_utf8(input);
  const bool single = checked.find('\'') == std::string::npos || checked.find('"') != std::string::npos;
  const char quote = single ? '\'' : '"';
  out += quote;
  std::string_view rest = checked;
  while (!rest.empty()) {
    const std::string_view before = rest;
    const uint32_t point = next_point(rest);
    if (point == static_cast<uint32_t>(quote) || point == '\\') {
      out += '\\';
      out += static_cast<char>(point);
    } else if (point == '\n' || point == '\r' || point == '\t') {
      out += point == '\n' ? "\\n" : point == '\r' ? "\\r" : "\\t";
    } else if (printable(point)) {
      out += before.substr(0, before.size() - rest.size());
    } else if (point < 0x100) {
      out += fmt::format("\\x{:02x}", point);
    } else if (point < 0x10000) {
      out += fmt::format("\\u{:04x}", point);
    } else {
      out += fmt::format("\\U{:08x}", point);
    }
  }
  out += quote;
}

void append_value(std::string& out, const Json& value) {
  bool first = true;
  const auto separate = [&] {
    if (!first) out += ", ";
    first = false;
  };
  if (value.is_object()) {
    out += '{';
    for (const auto& [key, member] : value.items()) {
      separate();
      append_repr(out, key);
      out += ": ";
      append_value(out, member);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (const Json& item : value) {
      separate();
      append_value(out, item);
    }
    out += ']';
  } else if (value.is_string() && !is_number(value)) {
    append_repr(out, value.get_ref<const std::string&>());
  } else if (value.is_boolean()) {
    out += value.get<bool>() ? "True" : "False";
  } else if (value.is_number_integer()) {
    out += value.dump();
  } else if (is_number(value)) {
    append_python_float(out, number_of(value));
  } else {
    out += "None";
  }
}

}  // namespace

std::string python_repr(const Json& value) {
  std::string out;
  append_value(out, value);
  return out;
}

std::string python_repr_of_strings(const Json& object) {
  std::string out = "{";
  for (const auto& [key, value] : object.items()) {
    if (out.size() > 1) out += ", ";
    append_repr(out, key);
    out += ": ";
    append_repr(out, value.get_ref<const std::string&>());
  }
  return out + "}";
}

std::string python_str(const Json& value) {
  if (value.is_string() && !is_number(value)) return valid_utf8(value.get_ref<const std::string&>());
  return python_repr(value);
}

namespace {

struct FormatSpec {
  size_t width = 0;
  bool comma = false;
  std::optional<size_t> precision;
  char type = 0;
};

std::optional<FormatSpec> parse_spec(std::string_view text) {
  FormatSpec spec;
  const auto digits = [&]() -> std::optional<size_t> {
    size_t end = 0;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end == 0 || end > 2) return std::nullopt;
    const size_t value = static_cast<size_t>(*parse_int(text.substr(0, end)));
    text.remove_prefix(end);
    return value;
  };
  if (!text.empty() && text[0] == '0') return std::nullopt;  // zero padding
  spec.width = digits().value_or(0);
  if (!text.empty() && text[0] == ',') {
    spec.comma = true;
    text.remove_prefix(1);
  }
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    spec.precision = digits();
    if (!spec.precision) return std::nullopt;
  }
  if (!text.empty()) {
    spec.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty() || std::string_view("feEgd%", 6).find(spec.type) == std::string_view::npos) return std::nullopt;
  return spec;
}

std::string with_commas(const std::string& number) {
  const size_t start = number.starts_with('-') ? 1 : 0;
  const size_t whole_end = std::min(number.find_first_not_of("0123456789", start), number.size());
  std::string out = number.substr(0, start);
  for (size_t i = start; i < whole_end; ++i) {
    if (i > start && (whole_end - i) % 3 == 0) out += ',';
    out += number[i];
  }
  return out + number.substr(whole_end);
}

}  // namespace

std::optional<std::string> python_format(const Json& value, std::string_view text) {
  if (text.empty()) return python_str(value);
  const std::optional<FormatSpec> spec = parse_spec(text);
  if (!spec || spec->type == 0 || !is_number(value)) return std::nullopt;
  std::string out;
  if (spec->type == 'd') {
    if (!value.is_number_integer() || spec->precision) return std::nullopt;
    out = value.dump();
  } else {
    const double number = number_of(value);
    const size_t precision = spec->precision.value_or(6);
    if (!std::isfinite(number)) {
      out = python_float(number) + (spec->type == '%' ? "%" : "");
    } else {
      switch (spec->type) {
        case 'f': out = fmt::format("{:.{}f}", number, precision); break;
        case 'e': out = fmt::format("{:.{}e}", number, precision); break;
        case 'E': out = fmt::format("{:.{}E}", number, precision); break;
        case 'g': out = fmt::format("{:.{}g}", number, precision); break;
        default: out = fmt::format("{:.{}f}%", number * 100, precision); break;
      }
    }
  }
  if (spec->comma) out = with_commas(out);
  if (out.size() < spec->width) out.insert(0, spec->width - out.size(), ' ');  // numbers are aligned to the right
  return out;
}

namespace {

constexpr int kMaxDepth = 100;

// Recursive descent over a literal. Every method leaves `rest_` behind what it consumed; a failure is nullopt.
class LiteralParser {
 public:
  explicit LiteralParser(std::string_view text) : rest_(text) {}

  std::optional<Json> whole() {
    std::optional<Json> result = value(0);
    blanks();
    if (!rest_.empty()) return std::nullopt;
    return result;
  }

 private:
  void blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }

  bool take(char wanted) {
    blanks();
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<Json> value(int depth) {
    blanks();
    if (rest_.empty() || depth > kMaxDepth) return std::nullopt;
    switch (rest_[0]) {
      case '{': return dictionary(depth);
      case '[': return list(depth, ']');
      case '(': return list(depth, ')');
      case '\'':
      case '"': return string();
      default: return word();
    }
  }

  std::optional<Json> list(int depth, char end) {
    rest_.remove_prefix(1);
    Json items = Json::array();
    while (!take(end)) {
      std::optional<Json> item = value(depth + 1);
      if (!item) return std::nullopt;
      items.push_back(std::move(*item));
      if (take(',')) continue;
      if (!take(end)) return std::nullopt;
      break;
    }
    return items;
  }

  std::optional<Json> dictionary(int depth) {
    rest_.remove_prefix(1);
    Json members = Json::object();
    while (!take('}')) {
      const std::optional<Json> key = value(depth + 1);
      if (!key || !take(':')) return std::nullopt;
      std::optional<Json> member = value(depth + 1);
      if (!member) return std::nullopt;
      members[key->is_string() ? key->get<std::string>() : python_str(*key)] = std::move(*member);
      if (take(',')) continue;
      if (!take('}')) return std::nullopt;
      break;
    }
    return members;
  }

  std::optional<Json> string() {
    const char quote = rest_[0];
    rest_.remove_prefix(1);
    std::string out;
    while (!rest_.empty() && rest_[0] != quote) {
      if (rest_[0] != '\\') {
        out += rest_[0];
        rest_.remove_prefix(1);
      } else if (!escape(out)) {
        return std::nullopt;
      }
    }
    if (rest_.empty()) return std::nullopt;
    rest_.remove_prefix(1);
    return out;
  }

  bool escape(std::string& out) {
    if (rest_.size() < 2) return false;
    const char kind = rest_[1];
    rest_.remove_prefix(2);
    constexpr std::string_view kNames = "nrtabfv0'\"\\";
    constexpr std::string_view kBytes("\n\r\t\a\b\f\v\0'\"\\", 11);
    const size_t index = kNames.find(kind);
    if (index != std::string_view::npos) {
      out += kBytes[index];
      return true;
    }
    const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits == 0 || rest_.size() < digits) return false;
    uint32_t point = 0;
    const auto result = std::from_chars(rest_.data(), rest_.data() + digits, point, 16);
    if (result.ec != std::errc() || result.ptr != rest_.data() + digits || point > 0x10FFFF) return false;
    rest_.remove_prefix(digits);
    append_utf8(out, point >= 0xD800 && point <= 0xDFFF ? 0xFFFD : point);
    return true;
  }

  static void append_utf8(std::string& out, uint32_t point) {
    if (point < 0x80) {
      out += static_cast<char>(point);
    } else if (point < 0x800) {
      out += static_cast<char>(0xC0 | (point >> 6));
      out += static_cast<char>(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
      out += static_cast<char>(0xE0 | (point >> 12));
      out += static_cast<char>(0x80 | ((point >> 6) & 0x3F));
      out += static_cast<char>(0x80 | (point & 0x3F));
    } else {
      out += static_cast<char>(0xF0 | (point >> 18));
      out += static_cast<char>(0x80 | ((point >> 12) & 0x3F));
      out += static_cast<char>(0x80 | ((point >> 6) & 0x3F));
      out += static_cast<char>(0x80 | (point & 0x3F));
    }
  }

  std::optional<Json> word();

  std::string_view rest_;
};

// None, True, False or a number; nullopt for any other word.
std::optional<Json> scalar(std::string_view word) {
  if (word == "None") return Json();
  if (word == "True") return Json(true);
  if (word == "False") return Json(false);
  if (word == "nan") return json_number(std::nan(""));
  if (word == "inf" || word == "-inf") return json_number(word[0] == '-' ? -HUGE_VAL : HUGE_VAL);
  if (word.empty() || word.find_first_not_of("+-.0123456789eE") != std::string_view::npos) return std::nullopt;
  if (const auto integer = parse_int(word)) return Json(static_cast<int64_t>(*integer));
  if (word.find_first_not_of("0123456789") == std::string_view::npos) {
    uint64_t large = 0;
    const auto result = std::from_chars(word.data(), word.data() + word.size(), large);
    if (result.ec == std::errc() && result.ptr == word.data() + word.size()) return Json(large);
  }
  if (const auto number = parse_double(word)) return json_number(*number);
  return std::nullopt;
}

std::optional<Json> LiteralParser::word() {
  const size_t end = std::min(rest_.find_first_of(" \t\n,:]})"), rest_.size());
  std::optional<Json> result = scalar(rest_.substr(0, end));
  rest_.remove_prefix(end);
  return result;
}

}  // namespace

std::optional<Json> parse_python_literal(std::string_view text) { return LiteralParser(text).whole(); }

Json value_of_python_str(std::string_view text) {
  if (std::optional<Json> value = scalar(text)) return std::move(*value);
  if (!text.empty() && (text[0] == '[' || text[0] == '{' || text[0] == '(')) {
    if (std::optional<Json> value = parse_python_literal(text)) return std::move(*value);
  }
  return std::string(text);
}

}  // namespace assay
