#include "datasets/r_data.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "r_data_file.h"

using namespace assay;
using namespace assay::r_data_file;

namespace {

// A data frame of three columns, as R writes it.
std::string frame() {
  return header() + named_list({{"user", integers({1, 2, RValue::kMissing})},
                                {"rating", reals({4.5, 3.0, 0.5})},
                                {"title", strings({"Emma", "Persuasion", "\xE7\xAE\x80"})}});
}

std::string refused(const std::string& bytes) {
  try {
    parse_r_data(bytes, "file.rds");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

// It may be read or refused, but nothing else may happen.
void survives(const std::string& bytes) {
  try {
    parse_r_data(bytes, "file.rds");
  } catch (const DataError&) {
  }
}

}  // namespace

TEST(RData, ReadsColumnsByName) {
  const RValue value = parse_r_data(frame(), "file.rds");
  ASSERT_EQ(value.kind, RValue::Kind::List);
  EXPECT_EQ(value.item("user")->integers, (std::vector<int32_t>{1, 2, RValue::kMissing}));
  EXPECT_EQ(value.item("rating")->reals, (std::vector<double>{4.5, 3.0, 0.5}));
  EXPECT_EQ(value.item("title")->strings[2], "\xE7\xAE\x80");
  EXPECT_EQ(value.item("nothing"), nullptr);
}

TEST(RData, ReadsBothVersions) {
  EXPECT_EQ(parse_r_data(header(2) + integers({7}), "f").integers, std::vector<int32_t>{7});
  EXPECT_EQ(parse_r_data(header(3) + integers({7}), "f").integers, std::vector<int32_t>{7});
  EXPECT_NE(refused(header(4) + integers({7})).find("version 4"), std::string::npos);
}

TEST(RData, ReadsReferencesAndMissingStrings) {
  const std::string list =
      header() + named_list({{"inner", named_list({{"x", integers({1})}}, symbol("names"))}}, reference(1));
  const RValue value = parse_r_data(list, "f");
  ASSERT_NE(value.item("inner"), nullptr);
  EXPECT_NE(value.item("inner")->item("x"), nullptr);
  const RValue text = parse_r_data(header() + word(16) + word(1) + word(9) + word(0xFFFFFFFF), "f");
  EXPECT_EQ(text.strings[0], std::nullopt);
}

TEST(RData, ReadsCompactSequences) {
  const auto compact = [](const char* form, double count) {
    const std::string info = word(2) + symbol(form) + word(2) + symbol("base") + word(2) + integers({13}) + null();
    return header() + word(238) + info + reals({count, 1, 1}) + null();
  };
  EXPECT_EQ(parse_r_data(compact("compact_intseq", 3), "f").integers, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_NE(refused(compact("compact_intseq", 1e18)).find("a sequence of 1e+18 numbers"), std::string::npos);
  EXPECT_NE(refused(compact("compact_intseq", -1)), "");
  EXPECT_NE(refused(compact("mmap_real", 3)).find("mmap_real"), std::string::npos);
}

TEST(RData, RefusesWhatIsNotThere) {
  EXPECT_NE(refused("").find("file.rds: byte 0"), std::string::npos);
  EXPECT_NE(refused("RDX3\n").find("not R data"), std::string::npos);
  EXPECT_NE(refused(header() + word(13) + word(0x7FFFFFFF)).find("a length of 2147483647"), std::string::npos);
  EXPECT_NE(refused(header() + word(14) + word(0x20000001) + "12345678"), "");
  EXPECT_NE(refused(header() + word(19) + word(0xFFFFFFFF)), "");
  EXPECT_NE(refused(header() + word(9) + word(1000) + "short").find("needs 1000 bytes"), std::string::npos);
  EXPECT_NE(refused(header() + word(255 | 5 << 8)).find("a reference to value 5 of 0"), std::string::npos);
  EXPECT_NE(refused(header() + word(3)).find("R type 3 is not data"), std::string::npos);
  EXPECT_NE(refused(frame() + "x").find("bytes after the value"), std::string::npos);
}

TEST(RData, RefusesWhatIsTooDeepOrTooMany) {
  std::string deep = header();
  for (int i = 0; i < 100'000; ++i) deep += word(19) + word(1);
  EXPECT_NE(refused(deep).find("too deep"), std::string::npos);
  std::string pairs = header();
  for (int i = 0; i < 2'000'000; ++i) pairs += word(2) + null();
  EXPECT_NE(refused(pairs).find("more than"), std::string::npos);
}

TEST(RData, SurvivesGarbage) {
  const std::string good = frame();
  for (size_t length = 0; length < good.size(); ++length) EXPECT_NE(refused(good.substr(0, length)), "") << length;
  for (size_t at = 0; at < good.size() * 8; ++at) {
    std::string bad = good;
    bad[at / 8] = static_cast<char>(bad[at / 8] ^ 1 << at % 8);
    survives(bad);
  }
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bad = header();
    for (size_t i = random() % 200; i > 0; --i) bad += static_cast<char>(random() % 4 == 0 ? random() : random() % 20);
    survives(bad);
  }
}
