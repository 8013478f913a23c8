#include "report/escape.h"

#include <algorithm>

#include "report/plain_text.h"

namespace assay {

std::string escape_markup(std::string_view text) {
  std::string out;
  for (char c : plain_text(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string escape_markdown(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*_[]|~#!";
  std::string out;
  for (char c : plain_text(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '@': out += "&#64;"; break;
      default:
        if (kMarkup.find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
  }
  return out;
}

std::string code_fence(const std::vector<std::string>& lines) {
  size_t longest = 2;
  for (const std::string& line : lines) {
    size_t run = 0;
    for (char c : line) {
      run = c == '`' ? run + 1 : 0;
      longest = std::max(longest, run);
    }
  }
  return std::string(longest + 1, '`');
}

std::string json_for_script(const Json& value) {
  constexpr std::string_view kSeparators = "\xE2\x80\xA8\xE2\x80\xA9";  // U+2028, U+2029
  const std::string text = to_line(value);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view next = std::string_view(text).substr(i, 3);
    if (next == kSeparators.substr(0, 3) || next == kSeparators.substr(3)) {
      out += next == kSeparators.substr(0, 3) ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (text[i] == '<') {
      out += "\\u003c";
    } else if (text[i] == '>') {
      out += "\\u003e";
    } else if (text[i] == '&') {
      out += "\\u0026";
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace assay
