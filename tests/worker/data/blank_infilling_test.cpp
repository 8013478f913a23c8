#include "data/blank_infilling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "config/worker_config.h"
#include "data/factory.h"

namespace assay {
namespace {

constexpr int64_t kSource = 40;
constexpr int64_t kVocabulary = 1003;  // texts have 0 .. 999

class BlankInfillingTest : public testing::Test {
 protected:
  BlankInfillingTest() {
    TokenWriter writer(folder_.path() / "a", 1000);
    for (int32_t d = 0; d < 10; ++d) {
      std::vector<int32_t> document(90);
      std::iota(document.begin(), document.end(), d * 90);
      writer.add(document, 400);
    }
    writer.finish();
    options_.source.sources = {{folder_.path() / "a"}};
    options_.source.index = {
        .split = "train", .part = 0, .sequence_length = kSource, .num_samples = 0, .seed = 7, .shuffle = true};
    options_.source.vocab_size = kVocabulary - kNumBlankTokens;
    options_.max_seq_len = 64;
    options_.vocab_size = kVocabulary;
    options_.seed = 3;
  }
  static std::vector<int64_t> all_of(const BlankInfilling& data) {
    std::vector<int64_t> indices(static_cast<size_t>(data.size()));
    std::iota(indices.begin(), indices.end(), 0);
    return indices;
  }
  TempFolder folder_{"blanks"};
  BlankInfilling::Options options_;
};

std::vector<int64_t> numbers(const torch::Tensor& row) {
  const torch::Tensor whole = row.contiguous();
  return {whole.data_ptr<int64_t>(), whole.data_ptr<int64_t>() + whole.numel()};
}

// What was cut out, put back into its blanks by the positions, is the stretch; labels are the next token of a span.
TEST_F(BlankInfillingTest, FillsTheBlanksBySpans) {
  const BlankInfilling data(options_);
  const GptDataset plain(options_.source);
  const std::vector<int64_t> indices = all_of(data);
  ASSERT_GT(indices.size(), 15);
  const Batch batch = data.gather(indices, 2);
  const torch::Tensor stretches = plain.gather(indices, 2).tensors[0];
  EXPECT_EQ(batch.num_samples, data.size());
  for (int64_t i = 0; i < data.size(); ++i) {
    const auto tokens = numbers(batch.tensors[0][i]), places = numbers(batch.tensors[1][i][0]);
    const auto span_places = numbers(batch.tensors[1][i][1]), labels = numbers(batch.tensors[3][i]);
    const auto text = static_cast<size_t>(batch.tensors[2][i].item<int64_t>());
    std::map<int64_t, std::vector<int64_t>> span_at;  // by its blank
    size_t n = text;
    while (n < tokens.size() && tokens[n] == 1001) {
      std::vector<int64_t>& span = span_at[places[n]];
      EXPECT_TRUE(span.empty()) << "a blank filled twice";
      for (int64_t k = 1;; ++n, ++k) {
        EXPECT_EQ(span_places[n], k);
        EXPECT_EQ(tokens[n], k == 1 ? 1001 : span.back());
        if (labels[n] == 1002) break;
        span.push_back(labels[n]);
      }
      ++n;
    }
    EXPECT_TRUE(std::all_of(labels.begin() + static_cast<int64_t>(n), labels.end(), [](auto x) { return x == -100; }));
    std::vector<int64_t> filled;
    for (size_t k = 0; k < text; ++k) {
      EXPECT_EQ(places[k], static_cast<int64_t>(k));
      EXPECT_EQ(span_places[k], 0);
      EXPECT_EQ(labels[k], -100);
      if (tokens[k] != 1000) {
        filled.push_back(tokens[k]);
        continue;
      }
      ASSERT_FALSE(span_at[static_cast<int64_t>(k)].empty());
      for (const int64_t token : span_at[static_cast<int64_t>(k)]) filled.push_back(token);
    }
    EXPECT_EQ(filled, numbers(stretches[i]));
  }
}

TEST_F(BlankInfillingTest, DrawsSpansByAFunctionOfSeedEpochAndSample) {
  const BlankInfilling data(options_);
  const std::vector<int64_t> some = {3, 5};
  const std::vector<int64_t> turned = {5, 3};
  EXPECT_TRUE(data.gather(some, 1).tensors[0][1].equal(data.gather(turned, 1).tensors[0][0]));
  EXPECT_FALSE(data.gather(some, 1).tensors[0].equal(data.gather(some, 2).tensors[0]));
  options_.seed = 4;
  EXPECT_FALSE(BlankInfilling(options_).gather(some, 1).tensors[0].equal(data.gather(some, 1).tensors[0]));
}

// 15 % of 40 are 6 tokens; with a range, anything between; never touching, never the first token.
TEST_F(BlankInfillingTest, CutsOutTheConfiguredShare) {
  const auto shares_of = [&](double least, double most, int64_t room) {
    options_.mask_ratio = least;
    options_.max_mask_ratio = most;
    options_.max_seq_len = room;
    const BlankInfilling data(options_);
    std::vector<int64_t> shares;
    for (int64_t epoch = 0; epoch < 40; ++epoch) {
      int64_t cut = 0, free_from = 1;
      for (const BlankInfilling::Span& span : data.spans_of(5, epoch)) {
        EXPECT_GE(span.begin, free_from);
        EXPECT_GE(span.length, 1);
        free_from = span.begin + span.length + 1;
        cut += span.length;
      }
      EXPECT_LE(free_from - 1, kSource);
      shares.push_back(cut);
    }
    std::sort(shares.begin(), shares.end());
    return shares;
  };
  EXPECT_EQ(shares_of(0.15, 0, 80).front(), 6);
  EXPECT_EQ(shares_of(0.15, 0, 80).back(), 6);
  const auto wide = shares_of(0.15, 0.9, 80);
  EXPECT_LT(wide.front(), 12);
  EXPECT_GT(wide.back(), 25);
  EXPECT_LT(shares_of(0.5, 0, 42).back(), 12) << "room for one span only";
  options_.max_seq_len = 41;
  EXPECT_THROW(BlankInfilling{options_}, ConfigError);
}

// Some samples lose their end instead, half of it at least and all but the first token at most; the others are as
// before.
TEST_F(BlankInfillingTest, CutsALongSpanAtTheEndOfSomeSamples) {
  options_.long_span_prob = 0.3;
  const BlankInfilling data(options_);
  int64_t num_long = 0, shortest = kSource, longest = 0;
  for (int64_t epoch = 0; epoch < 400; ++epoch) {
    const auto spans = data.spans_of(5, epoch);
    if (spans.size() > 1 || spans[0].length < 20) continue;
    ++num_long;
    EXPECT_EQ(spans[0].begin + spans[0].length, kSource);
    shortest = std::min(shortest, spans[0].length);
    longest = std::max(longest, spans[0].length);
  }
  EXPECT_NEAR(static_cast<double>(num_long), 0.3 * 400, 35);
  EXPECT_LE(shortest, 21);
  EXPECT_EQ(longest, kSource - 1);
  options_.long_span_prob = 1;
  options_.long_span_ratio = 0.9;
  const BlankInfilling all_long(options_);
  for (int64_t epoch = 0; epoch < 20; ++epoch) EXPECT_GE(all_long.spans_of(5, epoch).at(0).length, 36);
}

// The same tokens are asked of a model that reads from left to right.
TEST_F(BlankInfillingTest, PredictsTheSameTokensLeftToRight) {
  const BlankInfilling blanks(options_);
  options_.left_to_right = true;
  const BlankInfilling plain(options_);
  const std::vector<int64_t> indices = all_of(plain);
  const Batch asked = plain.gather(indices, 1), infilled = blanks.gather(indices, 1);
  for (int64_t i = 0; i < plain.size(); ++i) {
    std::vector<int64_t> expected, found;
    for (const int64_t label : numbers(infilled.tensors[3][i])) {
      if (label >= 0 && label < 1000) expected.push_back(label);
    }
    const auto tokens = numbers(asked.tensors[0][i]), labels = numbers(asked.tensors[1][i]);
    for (size_t k = 0; k < labels.size(); ++k) {
      if (labels[k] == -100) continue;
      ASSERT_LT(k + 1, tokens.size());
      EXPECT_EQ(labels[k], tokens[k + 1]);
      found.push_back(labels[k]);
    }
    std::sort(expected.begin(), expected.end());  // spans come in another order
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected);
  }
}

TEST_F(BlankInfillingTest, NamesTheKeyOfSillyOptions) {
  const auto message_of = [&](const Json& change) -> std::string {
    WorkerConfig config;
    Json dataset = {{"name", "blank_infilling"}, {"input_dir", folder_.path().string()}, {"source_seq_len", 20}};
    Json model = {{"vocab_size", kVocabulary}};
    for (const auto& [key, value] : change.items()) (key == "vocab_size" ? model : dataset)[key] = value;
    config.config = {{"Model", model}, {"Data", {{"Train", {{"dataset", dataset}}}}}};
    try {
      make_loader(config, "Train", 4, 1);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message_of(Json::object()), "");
  for (const auto& [key, value] : std::vector<std::pair<std::string, Json>>{{"mask_ratio", 0},
                                                                            {"mask_ratio", 1.5},
                                                                            {"max_mask_ratio", 0.1},
                                                                            {"long_span_prob", 1.5},
                                                                            {"long_span_ratio", 0},
                                                                            {"mean_span", -1},
                                                                            {"mean_span", 1e9},
                                                                            {"source_seq_len", 1},
                                                                            {"max_seq_len", 21},
                                                                            {"max_seq_len", 1'000'000'000},
                                                                            {"vocab_size", 3},
                                                                            {"no_such_key", 1}}) {
    EXPECT_NE(message_of({{key, value}}).find(key), std::string::npos) << key << " " << message_of({{key, value}});
  }
  // Texts have tokens up to 899; three of 902 mark blanks.
  EXPECT_NE(message_of({{"vocab_size", 902}}).find("899"), std::string::npos);
}

}  // namespace
}  // namespace assay
