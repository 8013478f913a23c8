// Every registered kind of data set, and the one of docs/extend/add-a-data-set.md, built as the page says.
#include "data/registry.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/doc_csv_rows.h"
#include "data/loader.h"

namespace assay {
namespace {

std::vector<DatasetEntry> with_the_page() {
  std::vector<DatasetEntry> all = datasets();
  all.push_back({"doc_csv_rows", "Rows of numbers with a class each, in csv files.", make_doc_csv_rows});
  return all;
}

class DataRegistry : public testing::Test {
 protected:
  std::shared_ptr<const Dataset> make(const Json& section) {
    const WorkerConfig config;
    Reader reader(section, "Data.Train.dataset");
    return make_dataset({config, "Train", 1}, reader, with_the_page());
  }
  std::string refused(const Json& section) {
    try {
      make(section);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  TempFolder folder_{"assay-datasets"};
};

TEST_F(DataRegistry, HasEveryNameOnceWithASentence) {
  std::set<std::string> names;
  for (const DatasetEntry& entry : datasets()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_TRUE(entry.summary.ends_with('.')) << entry.name;
  }
  EXPECT_EQ(names.size(), 8u);
}

TEST_F(DataRegistry, NamesTheNearestOneForAnUnknownName) {
  const std::string message = refused({{"name", "idx_image"}});
  EXPECT_NE(message.find("Data.Train.dataset.name"), std::string::npos) << message;
  EXPECT_NE(message.find("did you mean 'idx_images'"), std::string::npos) << message;
}

TEST_F(DataRegistry, MakesTheDataSetOfThePage) {
  write_file_atomic(folder_.path() / "train.csv", "0.5,1,0\n2,-3,1\n4,5,2\n");
  const auto rows = make({{"name", "doc_csv_rows"}, {"input_dir", folder_.path().string()}});
  ASSERT_EQ(rows->size(), 3);
  const std::vector<int64_t> order = {2, 0};
  const Batch batch = rows->gather(order, 0);
  EXPECT_EQ(batch.num_samples, 2);
  EXPECT_TRUE(torch::equal(batch.tensors[0], torch::tensor({{4.0F, 5.0F}, {0.5F, 1.0F}})));
  EXPECT_TRUE(torch::equal(batch.tensors[1], torch::tensor({2, 0}, torch::kLong)));
  const std::string before = rows->hash();
  write_file_atomic(folder_.path() / "train.csv", "0.5,1,0\n2,-3,1\n4,6,2\n");
  EXPECT_NE(make({{"name", "doc_csv_rows"}, {"input_dir", folder_.path().string()}})->hash(), before);
}

TEST_F(DataRegistry, NamesWhatIsWrongInThePagesDataSet) {
  write_file_atomic(folder_.path() / "train.csv", "0.5,1,0\n2,x,1\n");
  const Json section = {{"name", "doc_csv_rows"}, {"input_dir", folder_.path().string()}};
  EXPECT_NE(refused(section).find("train.csv:2: 'x' is not a number"), std::string::npos) << refused(section);
  write_file_atomic(folder_.path() / "train.csv", "0.5,1,0\n2,1\n");
  EXPECT_NE(refused(section).find("train.csv:2: 2 columns, expected 3"), std::string::npos) << refused(section);
  const Json unknown = {{"name", "doc_csv_rows"}, {"input_dir", folder_.path().string()}, {"spilt", "train"}};
  EXPECT_NE(refused(unknown).find("spilt"), std::string::npos) << refused(unknown);
}

}  // namespace
}  // namespace assay
