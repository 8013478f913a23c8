// Text data sets made ready for language models: a tokenizer that has seen the training part alone, and tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/json.h"
#include "datasets/catalogue.h"
#include "text/tokenizer.h"

namespace assay {

struct TokenizerKind {
  std::string type = "bpe";  // see text/train_tokenizer.h
  int32_t vocabulary_size = 8192;
};

// Trains a tokenizer on train.jsonl in the conversion's output and saves it beside, in tokenizer/. Adds to the counts.
std::unique_ptr<Tokenizer> add_tokenizer(const Conversion& conversion, const TokenizerKind& kind, Json& counts);

// train.jsonl and test.jsonl as train_ids.npy, train_idx.npz and test_ids.npy, test_idx.npz. Adds to the counts.
void add_tokens(const Conversion& conversion, const Tokenizer& tokenizer, Json& counts);

}  // namespace assay
