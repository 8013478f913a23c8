#include "datasets/tokens.h"

#include "text/encode_files.h"
#include "text/train_tokenizer.h"

namespace assay {

namespace {

auto reporter(const Conversion& conversion) {
  return [&conversion](std::string_view stage, int64_t done, int64_t total, std::string_view unit) {
    check_stop();
    conversion.report(stage, static_cast<double>(done), static_cast<double>(total), unit);
  };
}

}  // namespace

std::unique_ptr<Tokenizer> add_tokenizer(const Conversion& conversion, const TokenizerKind& kind, Json& counts) {
  std::unique_ptr<Tokenizer> tokenizer = train_tokenizer({.type = kind.type,
                                                          .vocabulary_size = kind.vocabulary_size,
                                                          .files = {conversion.output / "train.jsonl"},
                                                          .report = reporter(conversion)});
  tokenizer->save(conversion.output / "tokenizer");
  counts["vocabulary"] = tokenizer->vocabulary_size();
  return tokenizer;
}

void add_tokens(const Conversion& conversion, const Tokenizer& tokenizer, Json& counts) {
  for (const char* part : {"train", "test"}) {
    const EncodedFiles encoded = encode_files(tokenizer, {.files = {conversion.output / (std::string(part) + ".jsonl")},
                                                          .prefix = conversion.output / part,
                                                          .report = reporter(conversion)});
    counts[std::string(part) + "_tokens"] = encoded.num_tokens;
    counts[std::string(part) + "_bytes"] = encoded.num_bytes;
  }
}

}  // namespace assay
