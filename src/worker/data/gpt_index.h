// Which tokens a GPT sample consists of. The documents of a split are put in an order, read as one long text and cut
// into samples of `sequence_length` tokens, each with the token that follows; then the samples are put in an order. All
// of it is a function of GptIndex::Key and the documents' lengths, and is kept in a file beside the tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "text/token_files.h"

namespace assay {

// Documents [begin, end).
struct DocumentRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// The part (0 training, 1 evaluation, 2 test) that shares such as "949,50,1" give of so many documents, rounded as
// FleetX does. A word in place of shares, such as "train", gives all documents. Throws ConfigError.
DocumentRange split_documents(const std::string& split, int part, int64_t num_documents);

struct GptIndex {
  struct Key {
    std::string split;  // as written in the configuration
    int part = 0;
    int64_t sequence_length = 1024;
    int64_t num_samples = 0;  // 0: as many as one pass over the documents gives
    uint64_t seed = 0;
    bool shuffle = true;  // false: documents and samples in the order of the file
  };

  std::vector<int64_t> documents;  // in order; one pass or several, each with an order of its own
  std::vector<int64_t> starts;     // of sample i: starts[2i] a place in `documents`, starts[2i+1] a token of that one
  std::vector<int64_t> order;      // of the samples
  int64_t num_samples() const { return static_cast<int64_t>(order.size()); }
};

// Samples that one pass over the documents gives.
int64_t samples_of_one_pass(const TokenFile& tokens, const GptIndex::Key& key);

// Throws DataError when the documents have too few tokens.
GptIndex build_gpt_index(const TokenFile& tokens, const GptIndex::Key& key);

// The file that keeps the index: its name has everything the index depends on.
std::filesystem::path gpt_index_path(const TokenFile& tokens, const GptIndex::Key& key);

// Reads the file, or builds the index and writes it. A damaged file is built again and a folder that cannot be written
// to is not an error; `notice` is told of both.
GptIndex load_gpt_index(const TokenFile& tokens, const GptIndex::Key& key,
                        const std::function<void(const std::string&)>& notice);

}  // namespace assay
