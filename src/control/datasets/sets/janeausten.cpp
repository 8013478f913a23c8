// Jane Austen's six novels: text for language models, one chapter a document.
#include <fmt/format.h>

#include "base/error.h"
#include "datasets/lazy_load.h"
#include "datasets/sets/sets.h"
#include "datasets/text_layout.h"

namespace assay {

namespace {

constexpr const char* kJaneAustenData = "usr/lib/R/site-library/janeaustenr/data/Rdata";

// "CHAPTER I", "Chapter 12": the heading of a chapter.
bool is_heading(std::string_view line) { return line.starts_with("CHAPTER ") || line.starts_with("Chapter "); }

void add_chapters(const RValue& novel, TextWriter& writer) {
  std::string chapter;
  const auto end_chapter = [&] {
    const size_t last = chapter.find_last_not_of('\n');
    if (last != std::string::npos) writer.add(chapter.substr(0, last + 1) + "\n");
    chapter.clear();
  };
  for (const auto& line : novel.strings) {
    const std::string text = as_utf8(line.value_or(""));
    if (is_heading(text)) end_chapter();
    if (chapter.empty() && text.empty()) continue;
    chapter += text + "\n";
  }
  end_chapter();
}

Json convert_novels(const Conversion& conversion) {
  const LazyLoadData data(conversion.inputs[0] / kJaneAustenData);
  TextWriter writer(conversion.output);
  double done = 0;
  const std::vector<std::string> novels = {"emma",       "mansfieldpark",  "northangerabbey",
                                           "persuasion", "prideprejudice", "sensesensibility"};
  for (const std::string& name : novels) {
    check_stop();
    const RValue novel = data.value(name);
    if (novel.kind != RValue::Kind::Strings)
      throw DataError(fmt::format("{}: variable {} is not text", kJaneAustenData, name));
    add_chapters(novel, writer);
    conversion.report("convert", ++done, static_cast<double>(novels.size()), "novels");
  }
  return writer.finish();
}

}  // namespace

DataSet janeausten_set() {
  return {.name = "janeausten",
          .summary = "six novels of Jane Austen, 4 MB of text",
          .licence = "public domain",
          .layout = "text",
          .sources = {{.kind = Source::Kind::Debian,
                       .package = "r-cran-janeaustenr",
                       .version = "1.0.0-1",
                       .files = {{std::string(kJaneAustenData) + ".rdb",
                                  "8fb5198960d0da724b1562f96e4221e5c1b41ff455000280b02c55980c3d8f21"},
                                 {std::string(kJaneAustenData) + ".rdx",
                                  "cab8cbe4ce965d3b42b35c03383bafccc0eb78151f70e4748ead45270470c22f"}}}},
          .convert = convert_novels};
}

}  // namespace assay
