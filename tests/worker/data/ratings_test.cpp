#include "data/ratings.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

namespace assay {
namespace {

class RatingsFile : public testing::Test {
 protected:
  Ratings read(const std::string& text, int64_t num_users = 0) {
    std::ofstream(folder_.path() / "train.csv", std::ios::binary | std::ios::trunc) << text;
    return Ratings({.folder = folder_.path(), .split = "train", .num_users = num_users});
  }
  std::string refused(const std::string& text, int64_t num_users = 0) {
    try {
      read(text, num_users);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }
  TempFolder folder_{"assay-ratings"};
};

TEST_F(RatingsFile, GivesUsersItemsAndLabels) {
  const std::string text = "user,item,rating\n0,12,4.0\n3,5,3.5\n7,1,5\n";
  const Ratings data = read(text);
  ASSERT_EQ(data.size(), 3);
  const std::vector<int64_t> order = {2, 1, 0};
  const Batch batch = data.gather(order, 0);
  ASSERT_EQ(batch.tensors.size(), 3u);
  EXPECT_TRUE(torch::equal(batch.tensors[0], torch::tensor({7, 3, 0}, torch::kLong)));
  EXPECT_TRUE(torch::equal(batch.tensors[1], torch::tensor({1, 5, 12}, torch::kLong)));
  EXPECT_TRUE(torch::equal(batch.tensors[2], torch::tensor({1.0F, 0.0F, 1.0F})));
  EXPECT_EQ(data.hash(), sha256(text));
}

TEST_F(RatingsFile, NamesFileAndLine) {
  EXPECT_NE(refused("user;item\n").find("train.csv:1: the first line"), std::string::npos);
  EXPECT_NE(refused("user,item,rating\n1,2,3\n1,x,3\n").find("train.csv:3: item 'x'"), std::string::npos);
  EXPECT_NE(refused("user,item,rating\n-1,2,3\n").find("user '-1'"), std::string::npos);
  EXPECT_NE(refused("user,item,rating\n1,2\n").find("needs user,item,rating"), std::string::npos);
  EXPECT_NE(refused("user,item,rating\n1,2,nan\n").find("rating 'nan'"), std::string::npos);
  EXPECT_NE(refused("user,item,rating\n1,2,4").find("ends in the middle"), std::string::npos);
  EXPECT_NE(refused("user,item,rating\n9,2,4\n", 9).find("user 9, but there are 9"), std::string::npos);
  EXPECT_NE(refused("user,item,rating\n99999999999999999999,2,4\n"), "");
  EXPECT_NE(refused("user,item,rating\n"), "");
  EXPECT_NE(refused(""), "");
}

TEST_F(RatingsFile, SurvivesGarbage) {
  std::mt19937 random(1);
  const std::string letters = "0123456789,,,\n\n.-eruse\r\0xff";
  for (int round = 0; round < 500; ++round) {
    std::string text = "user,item,rating\n";
    for (int i = 0; i < 60; ++i) text += letters[random() % letters.size()];
    refused(text);
  }
}

}  // namespace
}  // namespace assay
