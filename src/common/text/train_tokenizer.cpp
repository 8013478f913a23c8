#include "text/train_tokenizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "text/byte_bpe.h"
#include "text/documents.h"
#include "text/sentence_piece.h"
#include "text/word_piece.h"

namespace assay {

namespace {

// Gives every document to `take`. Throws InvalidError when there is none.
void read_all(const TokenizerTraining& training, const std::function<void(const std::string&)>& take) {
  std::vector<std::unique_ptr<DocumentReader>> readers;
  int64_t total = 0;
  for (const auto& file : training.files) {
    readers.push_back(std::make_unique<DocumentReader>(file));
    total += static_cast<int64_t>(readers.back()->num_bytes());
  }
  int64_t done = 0;
  bool found = false;
  for (const auto& reader : readers) {
    while (const auto document = reader->next()) {
      found = found || !document->text.empty();
      take(document->text);
      if (training.report) {
        training.report("read texts", done + static_cast<int64_t>(reader->num_bytes_read()), total, "B");
      }
    }
    done += static_cast<int64_t>(reader->num_bytes());
  }
  if (!found) throw InvalidError("no text in the files");
}

}  // namespace

std::unique_ptr<Tokenizer> train_tokenizer(const TokenizerTraining& training) {
  const std::vector<std::string> types = {"bpe", "wordpiece", "sentencepiece"};
  if (std::find(types.begin(), types.end(), training.type) == types.end()) {
    throw UsageError(fmt::format("a tokenizer of type '{}': must be one of {}{}", training.type, join(types, ", "),
                                 did_you_mean(training.type, types)));
  }
  const TextProgress progress = [&](int64_t done, int64_t total) {
    if (training.report) training.report("learn tokens", done, total, "tokens");
  };
  if (training.type == "bpe") {
    ByteBpeTrainer trainer;
    read_all(training, [&](const std::string& text) { trainer.add(text); });
    return trainer.train(training.vocabulary_size, progress);
  }
  if (training.type == "wordpiece") {
    WordPieceTrainer trainer({.lower = training.lower});
    read_all(training, [&](const std::string& text) { trainer.add(text); });
    return trainer.train(training.vocabulary_size, progress);
  }
  SentencePieceTrainer trainer;
  read_all(training, [&](const std::string& text) { trainer.add(text); });
  return trainer.train(training.vocabulary_size, progress);
}

}  // namespace assay
