#include "import/flagperf/python_strings.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/text.h"

namespace assay {

namespace {

constexpr int kMaxWidth = 200;

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

// Up to `most` digits of the base from `at` on, which is moved behind them; nullopt with fewer than `least`.
std::optional<uint32_t> code_at(std::string_view text, size_t& at, int base, size_t least, size_t most) {
  uint32_t code = 0;
  size_t count = 0;
  for (; count < most && at < text.size() && digit_of(text[at]) < base; ++count, ++at) {
    code = code * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit_of(text[at]));
  }
  if (count < least) return std::nullopt;
  return code;
}

// One escape, `at` being behind its backslash. False: it cannot be told what it stands for.
bool append_escape(std::string& out, std::string_view text, size_t& at) {
  constexpr std::string_view kNames = "\\'\"abfnrtv", kCodes = "\\'\"\a\b\f\n\r\t\v";
  const char c = text[at];
  if (const size_t found = kNames.find(c); found != std::string_view::npos) {
    out += kCodes[found];
    ++at;
    return true;
  }
  if (c == '\n') {
    ++at;
    return true;
  }
  if (c == 'N') return false;
  std::optional<uint32_t> code;
  if (c == 'x' || c == 'u' || c == 'U') {
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    code = code_at(text, ++at, 16, digits, digits);
  } else if (c >= '0' && c <= '7') {
    code = code_at(text, at, 8, 1, 3);
  } else {
    out += '\\';  // Python leaves escapes that it does not know
    return true;
  }
  if (!code || *code == 0 || *code > 0x10FFFF || (*code >= 0xD800 && *code <= 0xDFFF)) return false;
  append_utf8(out, *code);
  return true;
}

struct Directive {
  std::string flags;
  int width = 0;
  int precision = -1;
  char letter = 's';
};

// One value by printf's rules, which are Python's for these letters.
std::optional<std::string> directed(const Directive& how, const Value& value) {
  if (how.width > kMaxWidth || how.precision > kMaxWidth) return std::nullopt;
  const std::string precision = how.precision >= 0 ? fmt::format(".{}", how.precision) : "";
  const std::string head = "%" + how.flags + (how.width > 0 ? std::to_string(how.width) : "");
  char buffer[1024];
  int length = -1;
  if (how.letter == 's') {
    std::optional<std::string> text = literal_str(value);
    // Width and precision count characters, which bytes are only in ASCII.
    if (!text || (head.size() == 1 && precision.empty())) return text;
    if (display_width(*text) != text->size() || text->size() > sizeof buffer / 2) return std::nullopt;
    length = std::snprintf(buffer, sizeof buffer, (head + precision + "s").c_str(), text->c_str());
  } else if (how.letter == 'd' || how.letter == 'i' || how.letter == 'x') {
    if (!value.is_int() || (how.letter == 'x' && value.as_int() < 0)) return std::nullopt;
    const char* letters = how.letter == 'x' ? "llx" : "lld";
    length = std::snprintf(buffer, sizeof buffer, (head + precision + letters).c_str(),
                           static_cast<long long>(value.as_int()));
  } else {
    if (!value.is_number()) return std::nullopt;
    length = std::snprintf(buffer, sizeof buffer, (head + precision + how.letter).c_str(), value.as_double());
  }
  if (length < 0 || length >= static_cast<int>(sizeof buffer)) return std::nullopt;
  return std::string(buffer, static_cast<size_t>(length));
}

// A number in the text, moved behind; -1 when there is none, larger ones are cut to what is refused anyway.
int number_at(std::string_view text, size_t& at) {
  int value = -1;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = std::min((value < 0 ? 0 : value) * 10 + (text[at] - '0'), kMaxWidth + 1);
  }
  return value;
}

}  // namespace

std::optional<std::string> literal_unescape(std::string_view text, bool raw) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\0') return std::nullopt;
    if (raw || text[at] != '\\' || at + 1 >= text.size()) {
      out += text[at++];
    } else if (!append_escape(out, text, ++at)) {
      return std::nullopt;
    }
    if (out.size() > kMaxPythonString) return std::nullopt;
  }
  return valid_utf8(out);
}

std::optional<std::string> literal_str(const Value& value) {
  switch (value.type()) {
    case Value::Type::Null: return "None";
    case Value::Type::Bool: return value.as_bool() ? "True" : "False";
    case Value::Type::Int: return std::to_string(value.as_int());
    case Value::Type::Double: return python_float(value.as_double());
    case Value::Type::String: return value.as_string();
    default: return std::nullopt;
  }
}

std::optional<std::string> literal_percent(std::string_view format, const std::vector<Value>& arguments) {
  std::string out;
  size_t used = 0;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    if (++at < format.size() && format[at] == '%') {
      out += format[at++];
      continue;
    }
    Directive how;
    while (at < format.size() && std::string_view("-0+ ").find(format[at]) != std::string_view::npos) {
      if (how.flags.find(format[at]) == std::string::npos) how.flags += format[at];
      ++at;
    }
    how.width = std::max(0, number_at(format, at));
    if (at < format.size() && format[at] == '.') how.precision = std::max(0, number_at(format, ++at));
    if (at >= format.size() || std::string_view("sdifegx").find(format[at]) == std::string_view::npos) {
      return std::nullopt;
    }
    how.letter = format[at++];
    if (used >= arguments.size()) return std::nullopt;
    const std::optional<std::string> text = directed(how, arguments[used++]);
    if (!text) return std::nullopt;
    out += *text;
    if (out.size() > kMaxPythonString) return std::nullopt;
  }
  if (used != arguments.size()) return std::nullopt;
  return out;
}

std::optional<std::string> literal_format(const Value& value, std::string_view spec) {
  if (spec.empty()) return literal_str(value);
  if (!value.is_number() && !value.is_string()) return std::nullopt;
  Directive how;
  size_t at = 0;
  // Texts stand at the left of their width, numbers at the right.
  if (value.is_string()) how.flags = "-";
  if (spec[at] == '0' && value.is_number()) {
    how.flags = "0";
    ++at;
  }
  how.width = std::max(0, number_at(spec, at));
  if (at < spec.size() && spec[at] == '.') how.precision = std::max(0, number_at(spec, ++at));
  // Without a letter numbers have rules of their own as soon as there is a precision.
  how.letter = value.is_string() ? 's' : value.is_int() && how.precision < 0 ? 'd' : '?';
  if (at < spec.size()) how.letter = spec[at++];
  const std::string_view letters = value.is_string() ? "s" : value.is_int() ? "dxfeg" : "feg";
  if (at != spec.size() || letters.find(how.letter) == std::string_view::npos) return std::nullopt;
  if (value.is_int() && (how.letter == 'd' || how.letter == 'x') && how.precision >= 0) return std::nullopt;
  return directed(how, value);
}

}  // namespace assay
