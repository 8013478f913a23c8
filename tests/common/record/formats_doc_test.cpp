// The examples in docs/reference/formats.md are true: each is a line of a dialect, and the lossless ones are written
// back as they stand there.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "record/log_file.h"

using namespace assay;

TEST(FormatsDoc, ShowsOnlyReadableExamples) {
  const std::vector<std::string> lines = split(read_file(ASSAY_SOURCE_DIR "/docs/reference/formats.md"), '\n');
  size_t num_examples = 0;
  bool inside = false;
  for (const std::string& line : lines) {
    if (line.starts_with("```")) {
      inside = line == "```log";
      continue;
    }
    if (!inside) continue;
    ++num_examples;
    const LogContents contents = parse_log(line + "\n", "docs/reference/formats.md");
    ASSERT_EQ(contents.num_unknown, 0u) << line;
    const Dialect& dialect = dialect_named(contents.main_dialect());
    if (dialect.lossless()) {
      EXPECT_EQ(to_log(contents.records, dialect), line + "\n");
    }
  }
  EXPECT_GE(num_examples, 10u);
}

TEST(FormatsDoc, NamesEveryDialect) {
  const std::string text = read_file(ASSAY_SOURCE_DIR "/docs/reference/formats.md");
  for (const Dialect* dialect : dialects()) {
    EXPECT_NE(text.find("`" + std::string(dialect->name()) + "`"), std::string::npos) << dialect->name();
  }
}
