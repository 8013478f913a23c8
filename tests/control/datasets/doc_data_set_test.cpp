// The data set of docs/extend/add-prepared-data.md, built from that page, can be prepared and read.
#include <gtest/gtest.h>

#include "base/text.h"
#include "datasets/prepare.h"

namespace assay {

DataSet doc_licences_set();

TEST(DocDataSet, IsPreparedAsThePageSays) {
  const TempFolder folder;
  const DataSet set = doc_licences_set();
  EXPECT_EQ(set.name, "doc_licences");
  const Prepared prepared = prepare_data(set, {.home = folder.path()});
  EXPECT_EQ(prepared.folder, folder.path() / "doc_licences");
  size_t num_documents = 0;
  for (const char* part : {"train.jsonl", "test.jsonl"}) {
    const std::vector<std::string> lines = split(read_file(prepared.folder / part), '\n');
    EXPECT_GT(lines.size(), 10u) << part;
    for (const std::string& line : lines) num_documents += line.starts_with("{\"text\":");
  }
  EXPECT_GT(num_documents, 200u);
  EXPECT_TRUE(prepare_data(set, {.home = folder.path()}).was_ready);
}

}  // namespace assay
