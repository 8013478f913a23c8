#include "datasets/lazy_load.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "datasets/inflate.h"
#include "r_data_file.h"

using namespace assay;
using namespace assay::r_data_file;

namespace {

// The two files of a package with one value in it.
class LazyLoad : public testing::Test {
 protected:
  LazyLoad() {
    const std::string value = header() + integers({10, 20, 30});
    record_ = word(static_cast<uint32_t>(value.size())) + deflated(value);
    write(record_, {0, static_cast<int32_t>(record_.size())});
  }

  void write(const std::string& rdb, const std::vector<int32_t>& place) const {
    const std::string variables = named_list({{"numbers", integers(place)}}, symbol("names"));
    const std::string index = header() + named_list({{"variables", variables}}, reference(1));
    std::ofstream(stem_.string() + ".rdb", std::ios::binary) << rdb;
    std::ofstream(stem_.string() + ".rdx", std::ios::binary) << deflated(index);
  }
  RValue read() const { return LazyLoadData(stem_).value("numbers"); }
  std::string refused() const {
    try {
      read();
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }

  TempFolder folder_{"assay-lazy-load"};
  fs::path stem_ = folder_.path() / "Rdata";
  std::string record_;
};

}  // namespace

TEST_F(LazyLoad, FindsAValueByItsName) {
  EXPECT_EQ(read().integers, (std::vector<int32_t>{10, 20, 30}));
  EXPECT_EQ(LazyLoadData(stem_).names(), std::vector<std::string>{"numbers"});
  EXPECT_THROW(LazyLoadData(stem_).value("other"), DataError);
}

TEST_F(LazyLoad, RefusesPlacesOutsideTheFile) {
  const auto size = static_cast<int32_t>(record_.size());
  for (const std::vector<int32_t>& place : std::vector<std::vector<int32_t>>{
           {0, size + 1}, {1, size}, {-1, size}, {INT32_MAX, INT32_MAX}, {0, -5}, {0, 3}, {0}, {0, size, 1}}) {
    write(record_, place);
    EXPECT_NE(refused(), "") << place[0];
  }
}

TEST_F(LazyLoad, RefusesDamagedRecords) {
  const auto size = static_cast<int32_t>(record_.size());
  for (size_t length = 0; length < record_.size(); ++length) {
    write(record_.substr(0, length), {0, static_cast<int32_t>(length)});
    EXPECT_NE(refused(), "") << length;
  }
  write(word(0xFFFFFFFF) + record_.substr(4), {0, size});
  EXPECT_NE(refused().find("claims 4294967295 bytes"), std::string::npos);
  write(word(1) + record_.substr(4), {0, size});
  EXPECT_NE(refused().find("unpacks to more than 1 bytes"), std::string::npos);
  write(record_.substr(0, 4) + "Z" + record_.substr(5), {0, size});
  EXPECT_NE(refused().find("xz"), std::string::npos);
  for (size_t at = 0; at < record_.size() * 8; ++at) {
    std::string bad = record_;
    bad[at / 8] = static_cast<char>(bad[at / 8] ^ 1 << at % 8);
    write(bad, {0, size});
    refused();
  }
}

TEST_F(LazyLoad, NamesTheFileThatIsMissing) {
  fs::remove(stem_.string() + ".rdx");
  EXPECT_NE(refused().find("Rdata.rdx"), std::string::npos);
}

TEST(Inflate, StopsAtItsLimit) {
  const std::string zeros = deflated(std::string(50'000'000, '\0'));
  EXPECT_THROW(inflate_bytes(zeros, 1000, "bomb"), DataError);
  EXPECT_EQ(inflate_bytes(zeros, 50'000'000, "zeros").size(), 50'000'000U);
}
