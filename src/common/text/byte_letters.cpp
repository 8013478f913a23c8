#include "text/byte_letters.h"

#include "text/unicode.h"

namespace assay {

namespace {

constexpr uint32_t kFirstLetter = 0x100;  // of the bytes that are not printable
constexpr size_t kNumLetters = 324;       // U+0000 .. U+0143

bool is_printable(uint32_t byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad); }

struct Letters {
  std::array<uint32_t, 256> of_byte{};
  std::array<int, kNumLetters> to_byte{};
  std::array<uint8_t, 256> order{};
  Letters() {
    to_byte.fill(-1);
    size_t place = 0;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (is_printable(byte)) assign(byte, byte, place++);
    }
    uint32_t letter = kFirstLetter;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (!is_printable(byte)) assign(byte, letter++, place++);
    }
  }
  void assign(uint32_t byte, uint32_t letter, size_t place) {
    of_byte[byte] = letter;
    to_byte[letter] = static_cast<int>(byte);
    order[place] = static_cast<uint8_t>(byte);
  }
};

const Letters& letters() {
  static const Letters table;
  return table;
}

}  // namespace

std::array<uint8_t, 256> bytes_in_gpt2_order() { return letters().order; }

std::string letters_of(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) append_utf8(out, letters().of_byte[static_cast<uint8_t>(c)]);
  return out;
}

std::optional<std::string> bytes_of(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (c.value >= kNumLetters || letters().to_byte[c.value] < 0) return std::nullopt;
    out += static_cast<char>(letters().to_byte[c.value]);
    at += c.num_bytes;
  }
  return out;
}

}  // namespace assay
