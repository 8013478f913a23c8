#include "report/plain_text.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace assay {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

// Bytes of the character that starts with `lead`, in valid UTF-8.
size_t char_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

uint32_t code_point(std::string_view character) {
  if (character.size() == 1) return static_cast<unsigned char>(character[0]);
  uint32_t point = static_cast<unsigned char>(character[0]) & (0x7Fu >> character.size());
  for (char c : character.substr(1)) point = (point << 6) | (static_cast<unsigned char>(c) & 0x3Fu);
  return point;
}

// Bytes of the escape sequence at the start of the text (which starts with ESC).
size_t escape_bytes(std::string_view text) {
  if (text.size() < 2) return text.size();
  size_t at = 2;
  if (text[1] == '[') {  // CSI: parameters, then one final byte
    while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x3F) ++at;
    return at < text.size() && text[at] >= 0x40 && text[at] <= 0x7E ? at + 1 : at;
  }
  if (text[1] == ']') {  // OSC: up to BEL or ESC backslash; a lone one must not swallow the rest
    const size_t end = text.find_first_of("\a\033", at);
    if (end == std::string_view::npos) return 2;
    return text[end] == '\a' ? end + 1 : std::min(end + 2, text.size());
  }
  return text[1] >= 0x20 && text[1] <= 0x7E ? 2 : 1;
}

bool forbidden(uint32_t point) {
  const bool control = point < 0x20 || (point >= 0x7F && point <= 0x9F);
  const bool direction = (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
  const bool line_end = point == 0x2028 || point == 0x2029;
  return control || direction || line_end || point == 0xFFFE || point == 0xFFFF;
}

}  // namespace

std::string plain_text(std::string_view text) {
  const bool too_long = text.size() > kMaxPlainBytes;
  const std::string valid = valid_utf8(text.substr(0, kMaxPlainBytes));
  std::string out;
  out.reserve(valid.size());
  for (std::string_view rest = valid; !rest.empty();) {
    size_t used = char_bytes(rest[0]);
    if (rest[0] == '\033') {
      used = escape_bytes(rest);
    } else if (rest[0] == '\n' || rest[0] == '\r' || rest[0] == '\t') {
      out += ' ';
    } else if (forbidden(code_point(rest.substr(0, used)))) {
      out += kReplacement;
    } else {
      out += rest.substr(0, used);
    }
    rest.remove_prefix(used);
  }
  if (too_long) out += kEllipsis;
  return out;
}

std::string plain_log_line(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  const size_t redraw = line.rfind('\r');
  return plain_text(redraw == std::string_view::npos ? line : line.substr(redraw + 1));
}

std::vector<std::string> wrap_text(std::string_view text, size_t width) {
  width = std::max<size_t>(width, 2);  // the widest character
  std::vector<std::string> lines(1);
  size_t used = 0;
  const auto new_line = [&] {
    lines.emplace_back();
    used = 0;
  };
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const size_t word_width = display_width(word);
    if (used > 0 && used + 1 + word_width > width) new_line();
    if (used > 0) {
      lines.back() += ' ';
      ++used;
    }
    for (std::string_view rest = word; !rest.empty();) {
      const std::string_view character = rest.substr(0, char_bytes(rest[0]));
      const size_t character_width = display_width(character);
      if (used + character_width > width) new_line();
      lines.back() += character;
      used += character_width;
      rest.remove_prefix(character.size());
    }
  }
  return lines;
}

std::string clip_text(std::string_view text, size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::string out;
  size_t used = 1;  // the ellipsis
  while (!text.empty()) {
    const std::string_view character = text.substr(0, char_bytes(text[0]));
    used += display_width(character);
    if (used > width) break;
    out += character;
    text.remove_prefix(character.size());
  }
  out += kEllipsis;
  return out;
}

}  // namespace assay
