#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "data/factory.h"
#include "data/masked_language.h"
#include "data/text_classification.h"
#include "text/byte_bpe.h"
#include "text/sentence_piece.h"
#include "text/word_piece.h"

namespace assay {
namespace {

const char* const kSentences[] = {"the cat sat on the mat.", "a dog ran away!", "was it the same dog?",
                                  "nobody knows what cats know.", "they sing and sing and sing."};

std::vector<int64_t> values_of(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

class TextDataTest : public testing::Test {
 protected:
  TextDataTest() {
    WordPieceTrainer words;
    ByteBpeTrainer bytes;
    for (const char* sentence : kSentences) {
      for (int i = 0; i < 3; ++i) words.add(sentence);
      bytes.add(sentence);
    }
    words.train(120)->save(folder_.path() / "tokenizer");
    bytes.train(300)->save(folder_.path() / "bytes");
    std::ofstream labelled(folder_.path() / "train.jsonl");
    for (int i = 0; i < 20; ++i) {
      labelled << "{\"text\": \"" << kSentences[i % 5] << (i % 4 == 0 ? std::string(300, 'a') : "")
               << "\", \"label\": " << i % 2 << "}\n";
    }
    std::ofstream documents(folder_.path() / "documents.jsonl");
    for (int i = 0; i < 12; ++i) {
      documents << "{\"text\": \"";
      for (int k = 0; k < 3 + i % 4; ++k) documents << kSentences[(i + k) % 5] << " ";
      documents << "\"}\n";
    }
  }
  TextClassification::Options classified() const {
    return {.file = folder_.path() / "train.jsonl", .tokenizer = folder_.path() / "tokenizer", .max_seq_len = 16};
  }
  MaskedLanguage::Options masked() const {
    return {.file = folder_.path() / "documents.jsonl",
            .tokenizer = folder_.path() / "tokenizer",
            .max_seq_len = 24,
            .seed = 3};
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_.path() / name) << text; }
  TempFolder folder_{"texts"};
};

TEST_F(TextDataTest, MakesRowsOfClassTextSeparatorPadding) {
  const TextClassification data(classified());
  EXPECT_EQ(data.size(), 20);
  const auto tokenizer = load_tokenizer(folder_.path() / "tokenizer");
  const std::vector<int64_t> indices = {1, 0, 19};
  const Batch batch = data.gather(indices, 0);
  ASSERT_EQ(batch.tensors.size(), 4u);
  EXPECT_EQ(batch.num_samples, 3);
  EXPECT_EQ(values_of(batch.tensors[3]), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(batch.tensors[1].sum().item<int64_t>(), 0);
  for (int64_t i = 0; i < 3; ++i) {
    const std::vector<int64_t> row = values_of(batch.tensors[0][i]), mask = values_of(batch.tensors[2][i]);
    const auto index = static_cast<size_t>(indices[static_cast<size_t>(i)]);
    std::vector<int32_t> ids =
        tokenizer->encode(std::string(kSentences[index % 5]) + (index % 4 == 0 ? std::string(300, 'a') : ""));
    if (ids.size() > 14) ids.resize(14);
    std::vector<int64_t> expected = {*tokenizer->special(SpecialToken::Class)};
    expected.insert(expected.end(), ids.begin(), ids.end());
    expected.push_back(*tokenizer->special(SpecialToken::Separator));
    std::vector<int64_t> expected_mask(expected.size(), 1);
    expected.resize(16, *tokenizer->special(SpecialToken::Padding));
    expected_mask.resize(16, 0);
    EXPECT_EQ(row, expected);
    EXPECT_EQ(mask, expected_mask);
  }
}

TEST_F(TextDataTest, TakesTokenizersWithoutClassTokens) {
  TextClassification::Options options = classified();
  options.tokenizer = folder_.path() / "bytes";
  const TextClassification data(options);
  EXPECT_NE(data.hash(), TextClassification(classified()).hash());
  const auto tokenizer = load_tokenizer(options.tokenizer);
  const std::vector<int64_t> row = values_of(data.gather(std::vector<int64_t>{1}, 0).tensors[0]);
  EXPECT_EQ(row[0], tokenizer->encode(kSentences[1])[0]);
}

// SentencePiece brings a protobuf of its own into a process that has libtorch's.
TEST_F(TextDataTest, RunsSentencePieceBesideLibtorch) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "libtorch has another protobuf; sanitizers do not let a library have its own (RTLD_DEEPBIND)";
#endif
  SentencePieceTrainer trainer;
  for (int i = 0; i < 50; ++i) {
    for (const char* sentence : kSentences) trainer.add(sentence);
  }
  const auto trained = trainer.train(330);
  trained->save(folder_.path() / "pieces");
  const std::string text = std::string(kSentences[3]) + "\xff \n\xe4\xbd\xa0";
  EXPECT_EQ(trained->decode(trained->encode(text)), text);
  TextClassification::Options options = classified();
  options.tokenizer = folder_.path() / "pieces";
  EXPECT_EQ(TextClassification(options).size(), 20);
  MaskedLanguage::Options pairs = masked();
  pairs.tokenizer = options.tokenizer;
  EXPECT_GE(MaskedLanguage(pairs).size(), 12);
}

TEST_F(TextDataTest, NamesTheLineOfAFaultInLabelledTexts) {
  const auto fault = [&](const std::string& line) -> std::string {
    write("train.jsonl", "{\"text\": \"a\", \"label\": 0}\n" + line + "\n");
    try {
      TextClassification data(classified());
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(fault("{\"text\": \"a\"}").find("train.jsonl:2: no label"), std::string::npos);
  EXPECT_NE(fault("{\"text\": \"a\", \"label\": 2}").find("train.jsonl:2: label 2, but there are 2 classes"),
            std::string::npos);
  EXPECT_NE(fault("{\"tekst\": \"a\", \"label\": 1}").find("train.jsonl:2: no text"), std::string::npos);
  write("train.jsonl", "");
  EXPECT_THROW(TextClassification{classified()}, DataError);
  TextClassification::Options options = classified();
  options.max_seq_len = 2;
  EXPECT_THROW(TextClassification{options}, ConfigError);
  options = classified();
  options.vocab_size = 50;
  EXPECT_THROW(TextClassification{options}, ConfigError);
}

TEST_F(TextDataTest, MasksRowsInBertsForm) {
  const MaskedLanguage data(masked());
  const auto tokenizer = load_tokenizer(folder_.path() / "tokenizer");
  const int64_t separator = *tokenizer->special(SpecialToken::Separator),
                mask = *tokenizer->special(SpecialToken::Mask);
  std::vector<int64_t> indices(static_cast<size_t>(data.size()));
  std::iota(indices.begin(), indices.end(), 0);
  int64_t places = 0, hidden = 0, as_mask = 0, unchanged = 0, following = 0, samples = 0;
  for (int64_t epoch = 0; epoch < 60; ++epoch) {
    const Batch batch = data.gather(indices, epoch);
    ASSERT_EQ(batch.tensors.size(), 5u);
    for (int64_t i = 0; i < data.size(); ++i) {
      const auto tokens = values_of(batch.tensors[0][i]), types = values_of(batch.tensors[1][i]);
      const auto used = values_of(batch.tensors[2][i]), masked_tokens = values_of(batch.tensors[3][i]);
      const auto length = static_cast<size_t>(std::accumulate(used.begin(), used.end(), int64_t{0}));
      ASSERT_EQ(tokens[0], *tokenizer->special(SpecialToken::Class));
      ASSERT_EQ(tokens[length - 1], separator);
      const auto middle = static_cast<size_t>(std::find(types.begin(), types.end(), 1) - types.begin());
      ASSERT_EQ(tokens[middle - 1], separator);
      ASSERT_GT(middle, 2u);
      ASSERT_LT(middle + 1, length);
      int64_t here = 0;
      for (size_t t = 0; t < tokens.size(); ++t) {
        ASSERT_EQ(used[t], t < length ? 1 : 0);
        ASSERT_EQ(types[t], t >= middle && t < length ? 1 : 0);
        if (masked_tokens[t] == -100) continue;
        ASSERT_TRUE(t > 0 && t + 1 < length && t + 1 != middle) << "a special token is hidden";
        ++here;
        as_mask += tokens[t] == mask;
        unchanged += tokens[t] == masked_tokens[t];
      }
      ASSERT_EQ(here, std::max<int64_t>(1, std::llround(0.15 * static_cast<double>(length - 3))));
      hidden += here;
      places += static_cast<int64_t>(length) - 3;
      following += batch.tensors[4][i].item<int64_t>() == 0;
      ++samples;
    }
  }
  const auto share = [](int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); };
  EXPECT_NEAR(share(hidden, places), 0.15, 0.03);
  EXPECT_NEAR(share(as_mask, hidden), 0.8, 0.05);
  EXPECT_NEAR(share(unchanged, hidden), 0.1, 0.03);
  EXPECT_GT(share(following, samples), 0.3);
  EXPECT_LT(share(following, samples), 0.6);
}

TEST_F(TextDataTest, MasksByAFunctionOfSeedEpochAndSample) {
  const MaskedLanguage data(masked()), twin(masked());
  MaskedLanguage::Options other = masked();
  other.seed = 4;
  const MaskedLanguage reseeded(other);
  const std::vector<int64_t> forward = {0, 1, 2, 3}, backward = {3, 2, 1, 0};
  const Batch a = data.gather(forward, 2), b = twin.gather(backward, 2);
  for (size_t k = 0; k < 5; ++k) EXPECT_TRUE(torch::equal(a.tensors[k], b.tensors[k].flip(0)));
  EXPECT_FALSE(torch::equal(a.tensors[0], data.gather(forward, 3).tensors[0]));
  EXPECT_FALSE(torch::equal(a.tensors[0], reseeded.gather(forward, 2).tensors[0]));
}

TEST_F(TextDataTest, ThrowsTypedErrorsForMaskedFaults) {
  MaskedLanguage::Options options = masked();
  options.tokenizer = folder_.path() / "bytes";  // has no [MASK]
  EXPECT_THROW(MaskedLanguage{options}, DataError);
  options = masked();
  options.mask_prob = 0;
  EXPECT_THROW(MaskedLanguage{options}, ConfigError);
  options = masked();
  options.max_seq_len = 4;
  EXPECT_THROW(MaskedLanguage{options}, ConfigError);
  options.max_seq_len = 5;
  const MaskedLanguage smallest(options);
  smallest.gather(std::vector<int64_t>{0, 1, 2}, 0);
  write("documents.jsonl", "{\"text\": \"\"}\n");
  EXPECT_THROW(MaskedLanguage{masked()}, DataError);
  write("documents.jsonl", "{\"text\": \"a cat\"}\n");  // one sentence in the world
  EXPECT_EQ(MaskedLanguage(masked()).gather(std::vector<int64_t>{0}, 0).tensors[4].item<int64_t>(), 1);
}

TEST_F(TextDataTest, ReadsTheConfiguration) {
  Json json = {
      {"case", "toy"},
      {"target", {{"metric", "accuracy"}, {"value", 1.0}, {"goal", "maximize"}}},
      {"data", {{"name", "toy"}, {"layout", "texts"}, {"path", folder_.path().string()}}},
      {"config",
       {{"Model", {{"name", "bert"}, {"vocab_size", 200}}},
        {"Data",
         {{"Train", {{"dataset", {{"name", "text_classification"}, {"split", "train"}, {"max_seq_len", 16}}}}},
          {"Eval",
           {{"dataset",
             {{"name", "masked_language"}, {"split", "test"}, {"file", "documents.jsonl"}, {"mask_prob", 0.2}}}}}}}}}};
  const auto make = [&](const std::string& part) {
    const WorkerConfig config = worker_config_of(json);
    return make_loader(config, part, 4, 1);
  };
  EXPECT_EQ(make("Train")->dataset().size(), 20);
  EXPECT_GE(make("Eval")->dataset().size(), 12);
  // The case's hashes: of a file in a folder too, and only of that one.
  const std::string vocabulary = sha256_file(folder_.path() / "tokenizer/vocab.txt");
  json["data"]["sha256"] = {{"tokenizer/vocab.txt", vocabulary}, {"other/vocab.txt", std::string(64, '0')}};
  EXPECT_EQ(make("Train")->dataset().size(), 20);
  json["data"]["sha256"]["tokenizer/vocab.txt"] = std::string(64, '0');
  EXPECT_THROW(make("Train"), DataError);
  EXPECT_THROW(make("Eval"), DataError);
  json["data"].erase("sha256");
  json["config"]["Data"]["Train"]["dataset"]["limit"] = 8;
  EXPECT_EQ(make("Train")->dataset().size(), 8);
  json["config"]["Data"]["Train"]["dataset"]["maks_prob"] = 8;
  EXPECT_THROW(make("Train"), ConfigError);
  json["config"]["Data"]["Train"]["dataset"].erase("maks_prob");
  json["config"]["Data"]["Train"]["dataset"]["split"] = "test";  // no test.jsonl
  EXPECT_THROW(make("Train"), DataError);
  json["config"]["Model"]["vocab_size"] = 20;
  EXPECT_THROW(make("Eval"), ConfigError);
}

}  // namespace
}  // namespace assay
