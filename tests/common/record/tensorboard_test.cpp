// The files are read back by an independent reader in tests/cli/tensorboard_test.py.
#include "record/tensorboard.h"

#include <gtest/gtest.h>

#include "base/error.h"

using namespace assay;

// RFC 3720, appendix B.4, and the catalogue of CRCs.
TEST(TensorBoard, MatchesPublishedChecksums) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(TensorBoard, WritesEachMetricAtOnceAndNothingElse) {
  const TempFolder folder("tensorboard");
  RecordWriter writer(folder.path() / "records.jsonl");
  auto backend = std::make_unique<TensorBoardWriter>(folder.path() / "board");
  const fs::path path = backend->path();
  writer.add_backend(std::move(backend));
  const auto first = fs::file_size(path);
  EXPECT_GT(first, 0u);
  Record record;
  record.type = Record::Type::Message;
  record.data = {{"text", "hello"}};
  writer.write(record);
  EXPECT_EQ(fs::file_size(path), first);
  record.type = Record::Type::Metrics;
  record.data = {{"global_step", 3}, {"train.loss", 0.5}};
  writer.write(record);
  const auto second = fs::file_size(path);
  EXPECT_GT(second, first);
  writer.write_metrics({0, 4}, {{"global_step", 4}, {"train.loss", 0.25}});
  EXPECT_GT(fs::file_size(path), second);
  EXPECT_EQ(read_records(folder.path() / "records.jsonl").size(), 3u);
}

TEST(TensorBoard, NamesAFolderThatCannotBeMade) {
  const TempFolder folder("tensorboard");
  write_file_atomic(folder.path() / "file", "");
  EXPECT_THROW(TensorBoardWriter(folder.path() / "file"), InfrastructureError);
}
