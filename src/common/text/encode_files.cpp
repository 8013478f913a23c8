#include "text/encode_files.h"

#include <memory>

#include "text/documents.h"
#include "text/token_files.h"

namespace assay {

EncodedFiles encode_files(const Tokenizer& tokenizer, const Encoding& encoding) {
  const int32_t end = encoding.end_token ? tokenizer.special(SpecialToken::End).value_or(-1) : -1;
  std::vector<std::unique_ptr<DocumentReader>> readers;  // all opened first: a missing file is an error at once
  int64_t total = 0;
  for (const auto& file : encoding.files) {
    readers.push_back(std::make_unique<DocumentReader>(file));
    total += static_cast<int64_t>(readers.back()->num_bytes());
  }
  TokenWriter writer(encoding.prefix, tokenizer.vocabulary_size());
  EncodedFiles encoded;
  std::vector<int32_t> ids;
  int64_t done = 0;
  for (const auto& reader : readers) {
    while (const auto document = reader->next()) {
      ids.clear();
      tokenizer.encode(document->text, ids);
      if (end >= 0 && !ids.empty()) ids.push_back(end);
      writer.add(ids, static_cast<int64_t>(document->text.size()));
      if (!ids.empty()) encoded.num_bytes += static_cast<int64_t>(document->text.size());
      if (encoding.report) {
        encoding.report("encode", done + static_cast<int64_t>(reader->num_bytes_read()), total, "B");
      }
    }
    done += static_cast<int64_t>(reader->num_bytes());
  }
  writer.finish();
  encoded.num_documents = writer.num_documents();
  encoded.num_tokens = writer.num_tokens();
  encoded.narrow = writer.narrow();
  return encoded;
}

}  // namespace assay
