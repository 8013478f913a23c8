#include "datasets/text_layout.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace assay {

bool is_held_out(std::string_view document) {
  // The first 32 bits of the SHA-256, as a number.
  return std::stoull(sha256(document).substr(0, 8), nullptr, 16) % 10 == 0;
}

std::string as_utf8(std::string_view bytes) {
  if (valid_utf8(bytes) == bytes) return std::string(bytes);
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xC0 | byte >> 6);
      text += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return text;
}

TextWriter::TextWriter(const fs::path& folder) {
  train_.path = folder / "train.jsonl";
  test_.path = folder / "test.jsonl";
  for (Part* part : {&train_, &test_}) part->file.open(part->path, std::ios::binary);
}

void TextWriter::add(std::string_view text, std::optional<int> label) {
  Json line = {{"text", text}};
  if (label) line["label"] = *label;
  Part& part = is_held_out(text) ? test_ : train_;
  part.file << to_line(line) << '\n';
  ++part.num_documents;
}

Json TextWriter::finish() {
  for (Part* part : {&train_, &test_}) {
    part->file.close();
    if (!part->file) throw InfrastructureError(fmt::format("{}: cannot be written", part->path.string()));
  }
  return {{"train", train_.num_documents}, {"test", test_.num_documents}};
}

}  // namespace assay
