#include "text/byte_bpe.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "random_text.h"
#include "text/byte_letters.h"
#include "text/gpt2_pieces.h"
#include "tokenizer_check.h"

namespace assay {
namespace {

std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> found;
  Gpt2Pieces pieces(text);
  while (const auto piece = pieces.next()) found.emplace_back(*piece);
  return found;
}

std::unique_ptr<ByteBpe> small_bpe(int32_t size = 400) {
  ByteBpeTrainer trainer;
  std::mt19937 random(3);
  trainer.add("the cat sat on the mat, and the dog didn't; they'll sing, we're singing the same thing again and again");
  for (int i = 0; i < 300; ++i) trainer.add(random_text(random, 60));
  return trainer.train(size);
}

void overwrite(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

TEST(Gpt2Pieces, FollowTheRules) {
  using List = std::vector<std::string>;
  EXPECT_EQ(pieces_of("Hello world"), (List{"Hello", " world"}));
  EXPECT_EQ(pieces_of("I'm we'll it's"), (List{"I", "'m", " we", "'ll", " it", "'s"}));
  EXPECT_EQ(pieces_of("I'M 'x"), (List{"I", "'", "M", " '", "x"}));
  EXPECT_EQ(pieces_of("a   b"), (List{"a", "  ", " b"}));
  EXPECT_EQ(pieces_of("a\n\nb \n"), (List{"a", "\n", "\n", "b", " \n"}));
  EXPECT_EQ(pieces_of("x1,234!? y"), (List{"x", "1", ",", "234", "!?", " y"}));
  EXPECT_EQ(pieces_of("na\xc3\xafve \xe4\xbd\xa0\xe5\xa5\xbd\xe3\x80\x82"),
            (List{"na\xc3\xafve", " \xe4\xbd\xa0\xe5\xa5\xbd", "\xe3\x80\x82"}));
  EXPECT_EQ(pieces_of("\xff\xfe a"), (List{"\xff\xfe", " a"}));
  EXPECT_TRUE(pieces_of("").empty());
}

TEST(ByteBpe, LearnsTheMostFrequentPairsFirst) {
  ByteBpeTrainer trainer;
  trainer.add("ab ab ab cd cd e");  // "ab" 1 and " ab" 2, "cd" 2: a+b 3 times, c+d twice, then ' '+ab, ' '+cd
  const auto bpe = trainer.train(1000);
  std::vector<std::string> learned;
  for (const auto& [left, right] : bpe->merges()) {
    const std::vector<int32_t> pair = {left, right};
    learned.push_back(bpe->decode(pair));
  }
  EXPECT_EQ(learned, (std::vector<std::string>{"ab", "cd", " ab", " cd"}));
  EXPECT_EQ(bpe->vocabulary_size(), 256 + 4 + 1);
  EXPECT_EQ(bpe->special(SpecialToken::End), 260);
  EXPECT_THROW(trainer.train(256), UsageError);
}

TEST(ByteBpe, TrainsDeterministicallyFromTheTexts) { EXPECT_EQ(small_bpe()->hash(), small_bpe()->hash()); }

TEST(ByteBpe, MatchesTokensOfThePeer) {
  const TempFolder folder;
  const auto bpe = small_bpe(700);
  bpe->save(folder.path());
  std::mt19937 random(5);
  std::vector<std::string> texts;
  for (int i = 0; i < 400; ++i) texts.push_back(random_text(random, 120));
  const auto expected = ids_of_peer("gpt2", folder.path(), texts);
  ASSERT_EQ(expected.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) ASSERT_EQ(bpe->encode(texts[i]), expected[i]) << texts[i];
}

TEST(ByteBpe, RoundTripsAnyBytesAndFiles) {
  const TempFolder folder;
  const auto bpe = small_bpe();
  bpe->save(folder.path());
  const auto loaded = load_tokenizer(folder.path());
  EXPECT_EQ(loaded->hash(), bpe->hash());
  EXPECT_EQ(loaded->specials(), bpe->specials());
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = i % 2 ? random_bytes(random, 200) : random_text(random, 100);
    const std::vector<int32_t> ids = bpe->encode(text);
    ASSERT_EQ(bpe->decode(ids), text);
    ASSERT_EQ(loaded->encode(text), ids);
  }
  const TempFolder again;
  loaded->save(again.path());
  for (const char* name : {"vocab.json", "merges.txt"})
    EXPECT_EQ(read_file(folder.path() / name), read_file(again.path() / name));
}

// One piece of a hundred thousand bytes: the queue, and in reasonable time.
TEST(ByteBpe, EncodesLongPiecesByTheRules) {
  const TempFolder folder;
  const auto bpe = small_bpe();
  bpe->save(folder.path());
  std::mt19937 random(9);
  std::vector<std::string> texts;
  for (int i = 0; i < 60; ++i) {
    std::string text;
    for (size_t k = 0, size = 30 + random() % 400; k < size; ++k)
      text += static_cast<char>('a' + random() % (1 + i % 26));
    texts.push_back(text);
  }
  const auto expected = ids_of_peer("gpt2", folder.path(), texts);
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(bpe->encode(texts[i]), expected[i]);
  const std::string huge(200'000, 'a');
  EXPECT_EQ(bpe->decode(bpe->encode(huge)), huge);
}

// Merges may be given in an order that no training produces; the rules still say what happens.
TEST(ByteBpe, FollowsTheRulesForOddMergeOrders) {
  const TempFolder folder;
  const auto bpe = small_bpe(300);
  bpe->save(folder.path());
  std::vector<std::string> lines = split(read_file(folder.path() / "merges.txt"), '\n');
  std::shuffle(lines.begin() + 1, lines.end() - 1, std::mt19937(1));
  overwrite(folder.path() / "merges.txt", join(lines, "\n"));
  const auto odd = load_tokenizer(folder.path());
  std::mt19937 random(11);
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.push_back(random_text(random, 80));
  for (int i = 0; i < 20; ++i) texts.push_back(std::string(100, 'e') + "thethethe" + std::string(60, 'a' + i));
  const auto expected = ids_of_peer("gpt2", folder.path(), texts);
  for (size_t i = 0; i < texts.size(); ++i) ASSERT_EQ(odd->encode(texts[i]), expected[i]) << texts[i];
}

TEST(ByteBpe, TreatsSpecialsAsTextUnlessRequested) {
  const auto bpe = small_bpe();
  const int32_t end = *bpe->special(SpecialToken::End);
  EXPECT_EQ(end, bpe->vocabulary_size() - 1);
  const std::string text = std::string("a") + kEndOfText + kEndOfText + "b";
  for (const int32_t id : bpe->encode(text)) EXPECT_NE(id, end);
  std::vector<int32_t> expected = bpe->encode("a");
  expected.insert(expected.end(), {end, end});
  bpe->encode("b", expected);
  EXPECT_EQ(bpe->encode_with_specials(text), expected);
  EXPECT_EQ(bpe->decode(expected), text);
  EXPECT_THROW(bpe->decode(std::vector<int32_t>{-1}), DataError);
  EXPECT_THROW(bpe->decode(std::vector<int32_t>{end + 1}), DataError);
}

TEST(ByteBpe, NamesFaultsInTheFiles) {
  const TempFolder folder;
  small_bpe()->save(folder.path());
  const fs::path vocabulary = folder.path() / "vocab.json", merges = folder.path() / "merges.txt";
  const std::string good_vocabulary = read_file(vocabulary), good_merges = read_file(merges);
  const std::string merge = split(good_merges, '\n')[1];
  const auto merges_fault = [&](const std::string& lines) {
    overwrite(merges, "#version: 0.2\n" + lines);
    return load_error(folder.path());
  };
  EXPECT_NE(merges_fault(merge + "\nsome\n").find("merges.txt:3: a merge is two tokens"), std::string::npos);
  EXPECT_NE(merges_fault("t h x\n").find("merges.txt:2: a merge is two tokens"), std::string::npos);
  EXPECT_NE(merges_fault(merge + "\n\n" + merge + "\n").find("merges.txt:3:"), std::string::npos);
  EXPECT_NE(merges_fault("q zzz\n").find("merges.txt:2: 'zzz' is not a token"), std::string::npos);
  EXPECT_NE(merges_fault(merge + "\n" + merge + "\n").find("merges.txt:3: the same merge as in line 2"),
            std::string::npos);
  overwrite(merges, good_merges);
  const auto vocabulary_fault = [&](const std::string& text) {
    overwrite(vocabulary, text);
    return load_error(folder.path());
  };
  EXPECT_NE(vocabulary_fault("{\"a\": 0, \"b\"").find("vocab.json:1: not valid JSON"), std::string::npos);
  EXPECT_NE(vocabulary_fault("{\"a\": 0, \"b\": 0}").find("token 'b' has number 0, which another has too"),
            std::string::npos);
  EXPECT_NE(vocabulary_fault("{\"a\": 0, \"a\": 1}").find("token 'a' appears twice"), std::string::npos);
  EXPECT_NE(vocabulary_fault("{\"a\": 0, \"b\": 5}").find("none of number 1"), std::string::npos);
  EXPECT_NE(vocabulary_fault("{\"a\": 99999999}").find("above any count"), std::string::npos);
  EXPECT_NE(vocabulary_fault("{\"a\": \"x\"}").find("token 'a': its number is not an integer"), std::string::npos);
  EXPECT_NE(vocabulary_fault("{\"a\": {\"b\": 1}}").find("token 'a': its number is not an integer"), std::string::npos);
  EXPECT_NE(vocabulary_fault("[1]").find("not an object"), std::string::npos);
  EXPECT_NE(vocabulary_fault("3").find("not an object"), std::string::npos);
  EXPECT_NE(vocabulary_fault("{}").find("no tokens"), std::string::npos);
  overwrite(merges, "");
  EXPECT_NE(vocabulary_fault("{\"a\": 0}").find("for byte 0x"), std::string::npos);
  EXPECT_NE(load_error(folder.path() / "none").find("no such folder"), std::string::npos);
  fs::remove(vocabulary);
  EXPECT_NE(load_error(folder.path()).find("no tokenizer in it"), std::string::npos);
  overwrite(merges, good_merges);
  overwrite(vocabulary, good_vocabulary);
  EXPECT_TRUE(load_tokenizer(folder.path()));
}

TEST(ByteBpe, SurvivesDamagedFiles) {
  const TempFolder folder;
  small_bpe()->save(folder.path());
  std::mt19937 random(13);
  for (const char* name : {"vocab.json", "merges.txt"}) {
    const std::string good = read_file(folder.path() / name);
    for (int round = 0; round < 400; ++round) {
      std::string bad = good;
      for (size_t i = 0, count = 1 + random() % 3; i < count; ++i)
        bad[random() % bad.size()] = static_cast<char>(random());
      if (round % 4 == 0) bad.resize(random() % bad.size());
      overwrite(folder.path() / name, bad);
      try {
        const auto tokenizer = load_tokenizer(folder.path());
        EXPECT_EQ(tokenizer->decode(tokenizer->encode("the singing cat")), "the singing cat");
      } catch (const DataError&) {
      }
    }
    overwrite(folder.path() / name, good);
  }
}

TEST(ByteLetters, AreABijection) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(bytes_of(letters_of(all)), all);
  EXPECT_EQ(letters_of(" the\n"), "\xc4\xa0the\xc4\x8a");
  EXPECT_FALSE(bytes_of("a b"));
  EXPECT_FALSE(bytes_of("\xe4\xbd\xa0"));
}

}  // namespace
}  // namespace assay
