// Tokenizers over one corpus, on one core: seconds to train, megabytes a second to encode and decode. Prints one JSON
// line; bench/tokenize runs it beside its peers.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/json.h"
#include "base/time.h"
#include "text/documents.h"
#include "text/train_tokenizer.h"

using namespace assay;

namespace {

constexpr int kRounds = 3;

double best_seconds(const std::function<void()>& work) {
  double best = 1e300;
  for (int i = 0; i < kRounds; ++i) {
    const Stopwatch clock;
    work();
    best = std::min(best, clock.seconds());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: tokenize_native CORPUS.jsonl FOLDER\n");
    return 2;
  }
  std::vector<std::string> texts;
  double megabytes = 0;
  DocumentReader reader(argv[1]);
  while (auto document = reader.next()) {
    megabytes += static_cast<double>(document->text.size()) / 1e6;
    texts.push_back(std::move(document->text));
  }
  Json results = Json::array();
  const auto measure = [&](const std::string& type, int32_t size) {
    const Stopwatch clock;
    const auto tokenizer = train_tokenizer({.type = type, .vocabulary_size = size, .files = {argv[1]}});
    const double train_s = clock.seconds();
    tokenizer->save(std::filesystem::path(argv[2]) / fmt::format("{}-{}", type, size));
    std::vector<int32_t> ids;
    const double encode_s = best_seconds([&] {
      ids.clear();
      for (const std::string& text : texts) tokenizer->encode(text, ids);
    });
    const double decode_s = best_seconds([&] { tokenizer->decode(ids); });
    results.push_back({{"type", type},
                       {"vocabulary", tokenizer->vocabulary_size()},
                       {"train_s", train_s},
                       {"encode_mb_per_s", megabytes / encode_s},
                       {"decode_mb_per_s", megabytes / decode_s},
                       {"num_tokens", ids.size()}});
  };
  measure("bpe", 8192);
  measure("bpe", 32768);
  measure("wordpiece", 8192);
  measure("sentencepiece", 8192);
  fmt::print("{}\n", to_line({{"megabytes", megabytes}, {"results", results}}));
}
