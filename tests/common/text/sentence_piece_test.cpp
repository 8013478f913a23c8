#include "text/sentence_piece.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "random_text.h"

namespace assay {
namespace {

const std::unique_ptr<SentencePiece>& trained() {
  static const std::unique_ptr<SentencePiece> tokenizer = [] {
    SentencePieceTrainer trainer;
    std::mt19937 random(3);
    const std::vector<std::string> words = {"the",     "cat",   "sat",   "on",    "mat",
                                            "singing", "sings", "again", "naïve", "你好"};
    for (int i = 0; i < 800; ++i) {
      std::string line;
      for (int k = 0; k < 12; ++k) line += words[random() % words.size()] + (random() % 5 ? " " : ", ");
      trainer.add(line);
    }
    return trainer.train(400);
  }();
  return tokenizer;
}

TEST(SentencePiece, LearnsWords) {
  const SentencePiece& tokenizer = *trained();
  EXPECT_EQ(tokenizer.kind(), "sentencepiece");
  EXPECT_GT(tokenizer.vocabulary_size(), 270);
  EXPECT_LT(tokenizer.encode("the cat sings again").size(), 8u);
  EXPECT_EQ(tokenizer.special(SpecialToken::Unknown), 0);
  EXPECT_EQ(tokenizer.special(SpecialToken::End), 2);
  EXPECT_EQ(tokenizer.special(SpecialToken::Padding), 3);
  for (const SpecialToken which : {SpecialToken::Class, SpecialToken::Separator, SpecialToken::Mask}) {
    EXPECT_TRUE(tokenizer.special(which));
  }
  SentencePieceTrainer trainer;
  trainer.add("the cat");
  EXPECT_THROW(trainer.train(100), UsageError);  // no room for 256 bytes
  EXPECT_THROW(SentencePieceTrainer().train(400), InvalidError);
}

TEST(SentencePiece, RoundTripsAnyBytes) {
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = i % 2 ? random_bytes(random, 200) : random_text(random, 60);
    ASSERT_EQ(trained()->decode(trained()->encode(text)), text);
  }
  for (const std::string text :
       {"  two  blanks ", "\xe2\x96\x81", " \xe2\x96\x81 a", "</s><s>", "<0x41>", "\n\t\r", ""}) {
    EXPECT_EQ(trained()->decode(trained()->encode(text)), text);
  }
  EXPECT_THROW(trained()->decode(std::vector<int32_t>{-1}), DataError);
}

TEST(SentencePiece, MatchesTokensOfItsPythonModule) {
  const TempFolder folder;
  trained()->save(folder.path());
  std::mt19937 random(7);
  std::vector<std::string> texts = {"the cat sat on the mat", "你好, singing"};
  while (texts.size() < 200) {
    const std::string text = random_text(random, 60);
    if (text.find("\xe2\x96\x81") == std::string::npos && text.find('\0') == std::string::npos) texts.push_back(text);
  }
  write_file_atomic(folder.path() / "texts.json", to_line(Json(texts)));
  const CapturedOutput output =
      capture({.argv = {"/usr/bin/python3", "-c",
                        "import json, sentencepiece\n"
                        "p = sentencepiece.SentencePieceProcessor(model_file='tokenizer.model')\n"
                        "for t in json.load(open('texts.json', encoding='utf-8')): print(p.encode(t))"},
               .cwd = folder.path()});
  ASSERT_TRUE(output.status.ok()) << output.err;
  const std::vector<std::string> lines = split(output.out, '\n');
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(trained()->encode(texts[i]), parse_json(lines[i], "python").get<std::vector<int32_t>>()) << texts[i];
  }
}

// A model of another's making, with normalisation and a blank before every text.
TEST(SentencePiece, ReadsModelsOfItsPythonModule) {
  const TempFolder folder;
  const CapturedOutput output = capture(
      {.argv =
           {"/usr/bin/python3", "-c",
            "import sentencepiece\n"
            "lines = ['the cat sat on the mat %d' % i for i in range(500)]\n"
            "sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_prefix='m', vocab_size=60,"
            " model_type='bpe', minloglevel=2)\n"
            "p = sentencepiece.SentencePieceProcessor(model_file='m.model')\n"
            "print(p.encode('the  cat, sat'), p.decode(p.encode('the  cat sat')))"},
       .cwd = folder.path()});
  ASSERT_TRUE(output.status.ok()) << output.err;
  const auto tokenizer = load_tokenizer(folder.path());
  const std::vector<int32_t> ids = tokenizer->encode("the  cat, sat");
  const std::string expected = output.out.substr(0, output.out.find(']') + 1);
  EXPECT_EQ(ids, parse_json(expected, "python").get<std::vector<int32_t>>());
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the  cat sat")), "the cat sat");
}

TEST(SentencePiece, RejectsGarbage) {
  const TempFolder folder;
  const fs::path path = folder.path() / "x.model";
  const auto put_model = [&](const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
  put_model("");
  EXPECT_THROW(load_tokenizer(folder.path()), DataError);
  std::mt19937 random(9);
  for (int i = 0; i < 200; ++i) {
    put_model(random_bytes(random, 300));
    EXPECT_THROW(load_tokenizer(folder.path()), DataError);
  }
  trained()->save(folder.path());
  const std::string good = read_file(folder.path() / "tokenizer.model");
  fs::remove(folder.path() / "tokenizer.model");
  for (int i = 0; i < 100; ++i) {
    put_model(good.substr(0, random() % good.size()));
    try {
      load_tokenizer(folder.path());
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("x.model"), std::string::npos);
    }
  }
  put_model(good);
  trained()->save(folder.path());
  EXPECT_THROW(load_tokenizer(folder.path()), DataError);  // two models
}

}  // namespace
}  // namespace assay
