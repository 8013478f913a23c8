#include "text/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "text/unicode_tables.h"

namespace assay {

CodePoint code_point_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[at + i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const uint32_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < size) return {};
  uint32_t value = first & (0x7fU >> size);
  for (uint32_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  if ((size == 3 && value < 0x800) || (size == 4 && value < 0x10000) || value > 0x10ffff) return {};
  if (value >= 0xd800 && value < 0xe000) return {};
  return {value, size};
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

size_t num_code_points(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) at += code_point_at(text, at).num_bytes;
  return count;
}

namespace {

CharClass search_class(uint32_t code_point) {
  const auto* after = std::upper_bound(std::begin(kClassRanges), std::end(kClassRanges), code_point,
                                       [](uint32_t c, const ClassRange& range) { return c < range.first; });
  if (after == std::begin(kClassRanges)) return CharClass::Other;
  const ClassRange& range = *(after - 1);
  return code_point <= range.last ? range.name : CharClass::Other;
}

// Latin, Greek and Cyrillic without a search.
constexpr uint32_t kDirect = 0x500;
const std::array<CharClass, kDirect>& direct_classes() {
  static const std::array<CharClass, kDirect> classes = [] {
    std::array<CharClass, kDirect> found{};
    for (uint32_t c = 0; c < kDirect; ++c) found[c] = search_class(c);
    return found;
  }();
  return classes;
}

}  // namespace

CharClass class_of(uint32_t code_point) {
  return code_point < kDirect ? direct_classes()[code_point] : search_class(code_point);
}

bool is_white_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
         c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_cjk_ideograph(uint32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b820 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

void append_folded(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return;
  }
  if (c >= 0xac00 && c < 0xd7a4) {  // a Hangul syllable: leading, vowel, trailing; Unicode standard, 3.12
    const uint32_t index = c - 0xac00;
    append_utf8(out, 0x1100 + index / 588);
    append_utf8(out, 0x1161 + index % 588 / 28);
    if (index % 28 != 0) append_utf8(out, 0x11a7 + index % 28);
    return;
  }
  const auto* found = std::lower_bound(std::begin(kFoldPlaces), std::end(kFoldPlaces), c,
                                       [](const FoldPlace& place, uint32_t code) { return place.code_point < code; });
  if (found == std::end(kFoldPlaces) || found->code_point != c) return append_utf8(out, c);
  for (uint32_t i = 0; i < found->size; ++i) append_utf8(out, kFoldText[found->begin + i]);
}

}  // namespace assay
