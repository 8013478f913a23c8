// vocab.json and merges.txt, as GPT-2's release has them.
#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "text/byte_bpe.h"
#include "text/byte_letters.h"
#include "text/unicode.h"
#include "text/vocabulary_json.h"

namespace assay {

namespace {

constexpr const char* kVersionLine = "#version: 0.2";

// JSON as Python's json.dumps writes it: everything beyond ASCII escaped.
std::string python_json_text(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    at += c.num_bytes;
    const uint32_t value = c.value == kNoCodePoint ? 0xfffd : c.value;
    if (value == '"' || value == '\\') {
      out += '\\';
      out += static_cast<char>(value);
    } else if (value >= 0x20 && value < 0x7f) {
      out += static_cast<char>(value);
    } else if (value < 0x10000) {
      out += fmt::format("\\u{:04x}", value);
    } else {
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((value - 0x10000) >> 10), 0xdc00 + (value & 0x3ff));
    }
  }
  return out + '"';
}

struct MergeLines {
  const fs::path& path;
  const std::unordered_map<std::string, int32_t>& numbers;
  ByteBpe::Parts& parts;
  std::vector<bool>& is_product;
  std::unordered_map<uint64_t, size_t> lines = {};

  [[noreturn]] void fail(size_t line, const std::string& what) const {
    throw DataError(fmt::format("{}:{}: {}", path.string(), line, what));
  }

  int32_t number_of(const std::string& letters, size_t line) const {
    const auto found = numbers.find(letters);
    if (found == numbers.end()) fail(line, fmt::format("'{}' is not a token of vocab.json", valid_utf8(letters)));
    return found->second;
  }

  void read(std::string_view text, size_t line) {
    const size_t blank = text.find(' ');
    if (blank == std::string_view::npos || blank == 0 || blank + 1 == text.size() ||
        text.find(' ', blank + 1) != std::string_view::npos) {
      fail(line, "a merge is two tokens with one blank between them");
    }
    const std::string left(text.substr(0, blank)), right(text.substr(blank + 1));
    const int32_t a = number_of(left, line), b = number_of(right, line), product = number_of(left + right, line);
    const auto [earlier, is_new] = lines.emplace(static_cast<uint64_t>(a) << 32 | static_cast<uint32_t>(b), line);
    if (!is_new) fail(line, fmt::format("the same merge as in line {}", earlier->second));
    parts.merges.emplace_back(a, b);
    parts.products.push_back(product);
    is_product[static_cast<size_t>(product)] = true;
  }
};

void read_merges(std::string_view content, MergeLines& merges) {
  size_t line = 0;
  while (!content.empty()) {
    const size_t end = std::min(content.find('\n'), content.size());
    std::string_view text = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    ++line;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (line == 1 && text.starts_with("#version")) continue;
    if (text.empty() && content.empty()) break;
    merges.read(text, line);
  }
}

}  // namespace

std::unique_ptr<ByteBpe> ByteBpe::load(const fs::path& folder) {
  const fs::path vocabulary_path = folder / "vocab.json", merges_path = folder / "merges.txt";
  const std::vector<std::string> letters = read_vocabulary_json(vocabulary_path);
  std::unordered_map<std::string, int32_t> numbers;
  for (size_t i = 0; i < letters.size(); ++i) numbers.emplace(letters[i], static_cast<int32_t>(i));

  Parts parts;
  std::vector<bool> is_product(letters.size(), false);
  MergeLines merges{.path = merges_path, .numbers = numbers, .parts = parts, .is_product = is_product};
  const std::string merges_text = read_file(merges_path);
  read_merges(merges_text, merges);

  for (const uint8_t byte : bytes_in_gpt2_order()) {
    const std::string letter = letters_of(std::string(1, static_cast<char>(byte)));
    if (!numbers.count(letter)) {
      throw DataError(
          fmt::format("{}: the token '{}' for byte 0x{:02x} is missing", vocabulary_path.string(), letter, byte));
    }
  }
  // Neither a byte nor a merge's product: no text encodes to it.
  for (size_t i = 0; i < letters.size(); ++i) {
    const auto bytes = bytes_of(letters[i]);
    const bool ordinary = bytes && (bytes->size() == 1 || is_product[i]);
    if (!ordinary) parts.specials[letters[i]] = static_cast<int32_t>(i);
    parts.tokens.push_back(ordinary ? *bytes : letters[i]);
  }
  return std::make_unique<ByteBpe>(std::move(parts));
}

void ByteBpe::save(const fs::path& folder) const {
  const auto letters = [&](int32_t id) {
    const std::string& token = parts_.tokens[static_cast<size_t>(id)];
    const auto special = parts_.specials.find(token);
    return special != parts_.specials.end() && special->second == id ? token : letters_of(token);
  };
  std::string vocabulary = "{";
  for (int32_t id = 0; id < vocabulary_size(); ++id) {
    vocabulary += fmt::format("{}{}: {}", id == 0 ? "" : ", ", python_json_text(letters(id)), id);
  }
  std::string merges = std::string(kVersionLine) + "\n";
  for (const auto& [left, right] : parts_.merges) merges += letters(left) + " " + letters(right) + "\n";
  make_folder(folder);
  write_file_atomic(folder / "vocab.json", vocabulary + "}");
  write_file_atomic(folder / "merges.txt", merges);
}

}  // namespace assay
