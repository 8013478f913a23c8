// The layout of text data sets: train.jsonl and test.jsonl, one document a line.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/json.h"

namespace assay {

// Which part a document belongs to is decided by its bytes alone: a tenth is held out, equal documents stay together,
// and a document that is added moves no other.
bool is_held_out(std::string_view document);

// Text of an unknown encoding as UTF-8: kept when it is that already, else taken as Latin-1, which any bytes are.
std::string as_utf8(std::string_view bytes);

// {"text": ..., "label": ...} lines, in the order they were added. Throws InfrastructureError.
class TextWriter {
 public:
  explicit TextWriter(const fs::path& folder);
  void add(std::string_view text, std::optional<int> label = std::nullopt);
  // Ends both files. {"train": documents, "test": documents}
  Json finish();

 private:
  struct Part {
    fs::path path;
    std::ofstream file;
    int64_t num_documents = 0;
  };
  Part train_;
  Part test_;
};

}  // namespace assay
