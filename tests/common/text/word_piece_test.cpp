#include "text/word_piece.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "random_text.h"
#include "text/basic_tokens.h"
#include "tokenizer_check.h"

namespace assay {
namespace {

using Words = std::vector<std::string>;

std::unique_ptr<WordPiece> small_word_piece(int32_t size = 600) {
  WordPieceTrainer trainer;
  std::mt19937 random(3);
  for (int i = 0; i < 400; ++i) trainer.add(random_text(random, 60));
  trainer.add("The cat sat on the mat. Singing, they sang the same song again and again; unaffable.");
  return trainer.train(size);
}

// The example of BERT's own tests.
WordPiece published_example(size_t max_word_chars = 100) {
  return WordPiece(
      {"[UNK]", "[CLS]", "[SEP]", "want", "##want", "##ed", "wa", "un", "runn", "##ing", ",", "low", "##lowest"},
      {.max_word_chars = max_word_chars});
}

TEST(BasicTokens, FollowTheRules) {
  EXPECT_EQ(basic_tokens(" \tHeLLo!how  \n Are yoU?  ", true), (Words{"hello", "!", "how", "are", "you", "?"}));
  EXPECT_EQ(basic_tokens(" \tHeLLo!how  \n Are yoU?  ", false), (Words{"HeLLo", "!", "how", "Are", "yoU", "?"}));
  EXPECT_EQ(basic_tokens("H\xc3\xa9llo", true), (Words{"hello"}));
  EXPECT_EQ(basic_tokens("H\xc3\xa9llo", false), (Words{"H\xc3\xa9llo"}));
  EXPECT_EQ(basic_tokens("ah\xe5\x8d\x9a\xe6\x8e\xa8zz", true), (Words{"ah", "\xe5\x8d\x9a", "\xe6\x8e\xa8", "zz"}));
  EXPECT_EQ(basic_tokens(std::string_view("a\0b\xff\x01\xef\xbf\xbd"
                                          "c",
                                          9),
                         true),
            (Words{"abc"}));
  EXPECT_EQ(basic_tokens("a\xc2\xa0"
                         "b\xe2\x80\xa8"
                         "c",
                         true),
            (Words{"a", "b", "c"}));
  EXPECT_TRUE(basic_tokens(" \n", true).empty());
}

TEST(WordPiece, MatchesPublishedExamples) {
  const WordPiece tokenizer = published_example();
  EXPECT_EQ(tokenizer.encode("UNwant\xc3\xa9"
                             "d,running"),
            (std::vector<int32_t>{7, 4, 5, 10, 8, 9}));
  EXPECT_EQ(tokenizer.encode("unwantedX running"), (std::vector<int32_t>{0, 8, 9}));
  EXPECT_EQ(tokenizer.encode("lowlowest"), (std::vector<int32_t>{11, 12}));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1, 7, 4, 5, 10, 8, 9, 2}), "unwanted , running");
  EXPECT_THROW(tokenizer.decode(std::vector<int32_t>{13}), DataError);
  // A word of more characters than allowed is unknown, whatever it consists of.
  EXPECT_EQ(published_example(7).encode("unwanted"), (std::vector<int32_t>{0}));
  EXPECT_EQ(published_example(8).encode("unwanted"), (std::vector<int32_t>{7, 4, 5}));
  EXPECT_EQ(published_example(3).encode("want"), (std::vector<int32_t>{0}));
  EXPECT_EQ(tokenizer.special(SpecialToken::Unknown), 0);
  EXPECT_FALSE(tokenizer.special(SpecialToken::Mask));
}

TEST(WordPiece, MatchesTokensOfThePeer) {
  const TempFolder folder;
  const auto tokenizer = small_word_piece();
  tokenizer->save(folder.path());
  const auto loaded = load_tokenizer(folder.path());
  EXPECT_EQ(loaded->hash(), tokenizer->hash());
  std::mt19937 random(5);
  std::vector<std::string> texts = {std::string(100, 'a'), std::string(101, 'a'),
                                    "singing SINGING s\xc3\xa9"
                                    "ance"};
  for (int i = 0; i < 500; ++i) texts.push_back(random_text(random, 120));
  const auto expected = ids_of_peer("bert", folder.path(), texts);
  ASSERT_EQ(expected.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(tokenizer->encode(texts[i]), expected[i]) << texts[i];
    ASSERT_EQ(loaded->encode(texts[i]), expected[i]) << texts[i];
  }
}

TEST(WordPiece, LearnsSpecialsLettersAndFrequentPieces) {
  WordPieceTrainer trainer;
  trainer.add("abab abab abab cd");
  const auto tokenizer = trainer.train(32);
  EXPECT_EQ(tokenizer->special(SpecialToken::Padding), 0);
  EXPECT_EQ(tokenizer->special(SpecialToken::Mask), 4);
  EXPECT_EQ(tokenizer->token(5), "a");
  EXPECT_EQ(tokenizer->token(6), "##a");
  EXPECT_EQ(tokenizer->encode("abab").size(), 1u);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("ABAB dc")), "abab dc");
  EXPECT_EQ(tokenizer->hash(), trainer.train(32)->hash());
  EXPECT_EQ(tokenizer->encode("xyz"), std::vector<int32_t>{1});
  EXPECT_THROW(trainer.train(10), UsageError);
  EXPECT_THROW(WordPieceTrainer().train(100), InvalidError);
  EXPECT_EQ(small_word_piece(500)->vocabulary_size(), 500);
}

TEST(WordPiece, EncodesAndDecodesAnyBytes) {
  const auto tokenizer = small_word_piece();
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_bytes(random, 300);
    const std::vector<int32_t> ids = tokenizer->encode(text);
    for (const int32_t id : ids) ASSERT_TRUE(id >= 0 && id < tokenizer->vocabulary_size());
    tokenizer->decode(ids);
  }
}

TEST(WordPiece, NamesFaultsInTheFiles) {
  const TempFolder folder;
  const auto fault = [&](const std::string& text) {
    std::ofstream(folder.path() / "vocab.txt", std::ios::binary) << text;
    return load_error(folder.path());
  };
  EXPECT_NE(fault("a\n\nb\n").find("vocab.txt:2: an empty line"), std::string::npos);
  EXPECT_NE(fault("a\nb\na\n").find("vocab.txt:3: token 'a' is in line 1 too"), std::string::npos);
  EXPECT_NE(fault("a\nb\n").find("[UNK] is missing"), std::string::npos);
  EXPECT_NE(fault("[UNK]\n\xff\n").find("vocab.txt:2: not valid UTF-8"), std::string::npos);
  EXPECT_NE(fault("").find("[UNK] is missing"), std::string::npos);
  std::ofstream(folder.path() / "vocab.txt") << "[UNK]\nA\r\na";
  EXPECT_EQ(load_tokenizer(folder.path())->encode("A"), std::vector<int32_t>{2});
  std::ofstream(folder.path() / "tokenizer_config.json") << "{\"do_lower_case\": false}";
  EXPECT_EQ(load_tokenizer(folder.path())->encode("A"), std::vector<int32_t>{1});
  std::ofstream(folder.path() / "tokenizer_config.json") << "{\"do_lower_case\": 3}";
  EXPECT_NE(load_error(folder.path()).find("do_lower_case"), std::string::npos);
  std::ofstream(folder.path() / "tokenizer_config.json") << "{";
  EXPECT_NE(load_error(folder.path()).find("tokenizer_config.json"), std::string::npos);
}

TEST(WordPiece, SurvivesDamagedFiles) {
  const TempFolder folder;
  small_word_piece()->save(folder.path());
  std::mt19937 random(13);
  for (const char* name : {"vocab.txt", "tokenizer_config.json"}) {
    const std::string good = read_file(folder.path() / name);
    int refused = 0, loaded = 0;
    for (int round = 0; round < 400; ++round) {
      std::string bad = good;
      for (size_t i = 0, count = 1 + random() % 3; i < count; ++i)
        bad[random() % bad.size()] = static_cast<char>(random());
      if (round % 4 == 0) bad.resize(random() % bad.size());
      std::ofstream(folder.path() / name, std::ios::binary) << bad;
      try {
        const auto tokenizer = load_tokenizer(folder.path());
        const std::vector<int32_t> ids = tokenizer->encode("the singing cat");
        for (const int32_t id : ids) ASSERT_TRUE(id >= 0 && id < tokenizer->vocabulary_size());
        tokenizer->decode(ids);
        ++loaded;
      } catch (const DataError&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 20) << name;
    EXPECT_GT(loaded, 20) << name;
    std::ofstream(folder.path() / name, std::ios::binary) << good;
  }
}

TEST(Tokenizer, EncodesTheFirstTokensAsInTheWholeText) {
  const auto tokenizer = small_word_piece();
  std::mt19937 random(17);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int k = 0; k < 20; ++k) text += random_text(random, 10) + (k % 2 ? " the singing cat" : "");
    for (const size_t count : {0, 1, 7, 40, 10000}) {
      std::vector<int32_t> expected = tokenizer->encode(text);
      expected.resize(std::min(expected.size(), count));
      ASSERT_EQ(tokenizer->encode_first(text, count), expected) << text;
    }
  }
}

}  // namespace
}  // namespace assay
