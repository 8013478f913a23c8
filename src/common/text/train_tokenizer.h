// Any kind of tokenizer from files of texts.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace assay {

struct TokenizerTraining {
  std::string type = "bpe";  // or "wordpiece", "sentencepiece"
  int32_t vocabulary_size = 8192;
  bool lower = true;                         // of wordpiece
  std::vector<std::filesystem::path> files;  // .jsonl and .txt, see documents.h
  // Told how far a stage is; may throw to end the work.
  std::function<void(std::string_view stage, int64_t done, int64_t total, std::string_view unit)> report = nullptr;
};

// Throws UsageError (type, size), DataError (files) or InvalidError (no texts in them).
std::unique_ptr<Tokenizer> train_tokenizer(const TokenizerTraining& training);

}  // namespace assay
