// Texts for fuzzing tokenizers: characters of every class that some rule asks about, in likely and unlikely company.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"
#include "text/unicode.h"

namespace assay {

inline std::string random_text(std::mt19937& random, size_t max_chars) {
  static const std::vector<std::pair<uint32_t, uint32_t>> kRanges = {
      {'a', 'e'},       {'a', 'z'},         {'A', 'Z'},         {'0', '9'},         {' ', '/'},
      {' ', ' '},       {'\t', '\r'},       {0, 0x1f},          {'\'', '\''},       {0x80, 0xff},
      {0x100, 0x24f},   {0x300, 0x34f},     {0x384, 0x3ff},     {0x400, 0x4ff},     {0x5d0, 0x5ea},
      {0x621, 0x64a},   {0x904, 0x94d},     {0x1100, 0x1112},   {0x1e00, 0x1eff},   {0x2000, 0x206f},
      {0x2070, 0x2089}, {0x20a0, 0x20bf},   {0x2150, 0x218b},   {0x2190, 0x22ff},   {0x3000, 0x3029},
      {0x3041, 0x3096}, {0x30a1, 0x30fa},   {0x4e00, 0x4e20},   {0xac00, 0xac40},   {0xf900, 0xf910},
      {0xff01, 0xff5e}, {0x1d165, 0x1d166}, {0x1f600, 0x1f64f}, {0x20000, 0x20010}, {0x10fffe, 0x10ffff},
  };
  static const std::vector<std::string> kWords = {"'s",   "'ll", "'re",   "don't",         "  ",    " \n",    "\n\n",
                                                  "the ", "ing", "hello", "<|endoftext|>", "[UNK]", "[MASK]", "##ing"};
  std::string text;
  const size_t size = random() % (max_chars + 1);
  for (size_t i = 0; i < size; ++i) {
    if (random() % 4 == 0) {
      text += kWords[random() % kWords.size()];
      continue;
    }
    const auto& [low, high] = kRanges[random() % kRanges.size()];
    const size_t repeats = random() % 8 == 0 ? 1 + random() % 20 : 1;
    const auto c = static_cast<uint32_t>(low + random() % (high - low + 1));
    for (size_t k = 0; k < repeats; ++k) append_utf8(text, c);
  }
  return text;
}

inline std::string random_bytes(std::mt19937& random, size_t max_bytes) {
  std::string bytes(random() % (max_bytes + 1), '\0');
  for (char& c : bytes) c = static_cast<char>(random() % (random() % 2 ? 256 : 128));
  return bytes;
}

// What tests/peers/tokenizers.py gives for each text.
inline std::vector<std::vector<int32_t>> ids_of_peer(const std::string& kind, const fs::path& tokenizer,
                                                     const std::vector<std::string>& texts) {
  const TempFolder folder;
  const fs::path file = folder.path() / "texts.json";
  write_file_atomic(file, to_line(Json(texts)));
  const CapturedOutput output =
      capture({.argv = {"/usr/bin/python3", std::string(ASSAY_SOURCE_DIR) + "/tests/peers/tokenizers.py", kind,
                        tokenizer.string(), file.string()}});
  EXPECT_TRUE(output.status.ok()) << output.err;
  std::vector<std::vector<int32_t>> all;
  for (const std::string& line : split(output.out, '\n')) {
    if (!line.empty()) all.push_back(parse_json(line, "the peer").get<std::vector<int32_t>>());
  }
  return all;
}

}  // namespace assay
