#include "data/gpt_dataset.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/factory.h"

namespace assay {
namespace {

// Documents of different lengths whose tokens count up from first_token, so that every token has a place.
std::vector<std::vector<int32_t>> counting_documents(int count, int32_t first_token = 0) {
  std::vector<std::vector<int32_t>> documents;
  int32_t token = first_token;
  for (int i = 0; i < count; ++i) {
    documents.emplace_back(static_cast<size_t>(1 + (i * 7) % 13));
    for (int32_t& t : documents.back()) t = token++;
  }
  return documents;
}

void write_tokens(const fs::path& prefix, const std::vector<std::vector<int32_t>>& documents) {
  TokenWriter writer(prefix, 60000);
  for (const auto& document : documents) writer.add(document, 4 * static_cast<int64_t>(document.size()));
  writer.finish();
}

std::vector<int64_t> row_of(const torch::Tensor& rows, int64_t i) {
  const auto* data = rows.data_ptr<int64_t>() + i * rows.size(1);
  return {data, data + rows.size(1)};
}

class GptDatasetTest : public testing::Test {
 protected:
  GptDatasetTest() {
    write_tokens(folder_.path() / "a", counting_documents(50));
    options_.sources = {{folder_.path() / "a"}};
    options_.index = {.split = "train", .part = 0, .sequence_length = 8, .num_samples = 0, .seed = 7, .shuffle = true};
    options_.notice = [this](const std::string& text) { notices_.push_back(text); };
  }
  // Every sample's tokens and labels, epoch 0.
  static std::pair<torch::Tensor, torch::Tensor> all(const GptDataset& data) {
    std::vector<int64_t> indices(static_cast<size_t>(data.size()));
    std::iota(indices.begin(), indices.end(), 0);
    const Batch batch = data.gather(indices, 0);
    return {batch.tensors[0], batch.tensors[1]};
  }
  std::vector<fs::path> index_files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().filename().string().find("_index_") != std::string::npos) found.push_back(entry.path());
    }
    return found;
  }
  TempFolder folder_{"gpt"};
  GptDataset::Options options_;
  std::vector<std::string> notices_;
};

TEST_F(GptDatasetTest, CutsTheTextIntoSamplesInOrder) {
  options_.index.shuffle = false;
  const GptDataset data(options_);
  const TokenFile tokens(folder_.path() / "a");
  EXPECT_EQ(data.size(), (tokens.num_tokens() - 1) / 8);
  const auto [inputs, labels] = all(data);
  for (int64_t i = 0; i < data.size(); ++i) {
    for (int64_t t = 0; t < 8; ++t) {
      EXPECT_EQ(row_of(inputs, i)[static_cast<size_t>(t)], 8 * i + t);
      EXPECT_EQ(row_of(labels, i)[static_cast<size_t>(t)], 8 * i + t + 1);
    }
  }
  EXPECT_NEAR(*data.bytes_per_token(), 4.0, 1e-12);
}

TEST_F(GptDatasetTest, ShufflesDocuments) {
  const GptDataset data(options_);
  const auto [inputs, labels] = all(data);
  // Inside a document tokens count up; a step to another number is a document's first token.
  const TokenFile tokens(folder_.path() / "a");
  std::set<int64_t> firsts;
  for (int64_t i = 0; i < tokens.num_documents(); ++i) firsts.insert(tokens.begin_of(i));
  std::set<int64_t> seen;
  for (int64_t i = 0; i < data.size(); ++i) {
    const auto in = row_of(inputs, i), out = row_of(labels, i);
    for (size_t t = 0; t < 8; ++t) {
      EXPECT_TRUE(out[t] == in[t] + 1 || firsts.count(out[t])) << in[t] << " before " << out[t];
      if (t < 7) {
        EXPECT_EQ(in[t + 1], out[t]);
      }
      EXPECT_TRUE(seen.insert(in[t]).second) << "twice: " << in[t];
    }
  }
  options_.index.seed = 8;
  EXPECT_FALSE(torch::equal(all(GptDataset(options_)).first, inputs));
}

TEST_F(GptDatasetTest, RepeatsDocumentsForMoreSamplesThanOnePass) {
  const TokenFile tokens(folder_.path() / "a");
  options_.index.num_samples = 3 * tokens.num_tokens() / 8 + 5;
  const GptDataset data(options_);
  EXPECT_EQ(data.size(), options_.index.num_samples);
  std::map<int64_t, int> times;
  const torch::Tensor inputs = all(data).first.flatten().contiguous();
  for (int64_t i = 0; i < inputs.numel(); ++i) ++times[inputs.data_ptr<int64_t>()[i]];
  for (const auto& [token, count] : times) EXPECT_TRUE(count >= 3 && count <= 4) << token << ": " << count;
  EXPECT_EQ(times.size(), static_cast<size_t>(tokens.num_tokens()));
}

TEST_F(GptDatasetTest, KeepsTheIndexInAFilePerKey) {
  const torch::Tensor first = all(GptDataset(options_)).first;
  ASSERT_EQ(index_files().size(), 1u);
  const std::string name = index_files()[0].filename().string();
  for (const char* part : {"a_index_train", "splitall", "0ns", "8sl", "7s"}) {
    EXPECT_NE(name.find(part), std::string::npos) << name;
  }
  const auto written = fs::last_write_time(index_files()[0]);
  EXPECT_TRUE(torch::equal(all(GptDataset(options_)).first, first));
  EXPECT_EQ(fs::last_write_time(index_files()[0]), written);
  GptDataset::Options other = options_;
  other.index.seed = 8;
  GptDataset{other};
  other = options_;
  other.index.split = "8,1,1";
  GptDataset{other};
  other = options_;
  other.index.sequence_length = 9;
  GptDataset{other};
  EXPECT_EQ(index_files().size(), 4u);
  EXPECT_TRUE(notices_.empty());
  // Other documents under the same name do not meet the old index.
  write_tokens(folder_.path() / "a", counting_documents(60));
  EXPECT_GT(GptDataset(options_).size(), first.size(0));
  EXPECT_EQ(index_files().size(), 5u);
}

TEST_F(GptDatasetTest, RebuildsADamagedIndexAndSaysSo) {
  const torch::Tensor first = all(GptDataset(options_)).first;
  const fs::path path = index_files()[0];
  const std::string good = read_file(path);
  for (size_t at = 0; at < good.size(); at += good.size() / 97 + 1) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x15);
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_TRUE(torch::equal(all(GptDataset(options_)).first, first));
  }
  std::ofstream(path, std::ios::binary) << good.substr(0, good.size() / 2);
  notices_.clear();
  EXPECT_TRUE(torch::equal(all(GptDataset(options_)).first, first));
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_NE(notices_[0].find("built again"), std::string::npos);
  EXPECT_EQ(read_file(path), good);
}

TEST_F(GptDatasetTest, RejectsAnIndexThatLies) {
  GptDataset{options_};
  const fs::path path = index_files()[0];
  const TokenFile tokens(folder_.path() / "a");
  const GptIndex good = build_gpt_index(tokens, options_.index);
  const auto reload = [&](const GptIndex& index) {
    write_npz_atomic(path, {npz_item("documents", index.documents), npz_item("starts", index.starts),
                            npz_item("order", index.order)});
    notices_.clear();
    GptDataset{options_};
    return notices_.size();
  };
  EXPECT_EQ(reload(good), 0u);
  GptIndex bad = good;
  bad.documents[3] = 50;
  EXPECT_EQ(reload(bad), 1u);
  bad = good;
  bad.documents.clear();
  EXPECT_EQ(reload(bad), 1u);
  bad = good;
  bad.order[0] = bad.order[1];
  EXPECT_EQ(reload(bad), 1u);
  bad = good;
  bad.starts[9] += 1;
  EXPECT_EQ(reload(bad), 1u);
  bad = good;
  bad.order.pop_back();
  EXPECT_EQ(reload(bad), 1u);
}

TEST(GptSplit, RoundsSharesAsFleetXDoes) {
  const auto ranges = [](const std::string& split, int64_t count) {
    std::vector<int64_t> ends;
    for (int part = 0; part < 3; ++part) {
      const DocumentRange range = split_documents(split, part, count);
      EXPECT_EQ(range.begin, part == 0 ? 0 : ends.back());
      ends.push_back(range.end);
    }
    return ends;
  };
  EXPECT_EQ(ranges("949,50,1", 1000), (std::vector<int64_t>{949, 999, 1000}));
  EXPECT_EQ(ranges("8,1,1", 10), (std::vector<int64_t>{8, 9, 10}));
  EXPECT_EQ(ranges("1,1,1", 10), (std::vector<int64_t>{4, 7, 10}));  // 3+3+3 is one too few: every bound moves
  EXPECT_EQ(ranges("1", 10), (std::vector<int64_t>{10, 10, 10}));
  EXPECT_EQ(ranges("0.5, 0.5", 9), (std::vector<int64_t>{5, 9, 9}));
  EXPECT_EQ(split_documents("train", 0, 7).end, 7);
  EXPECT_EQ(split_documents("test", 1, 7).end, 7);
  for (const char* bad : {"1,x", "1,,1", "-1,2", "0,0,0", "1,1,1,1", "1;2", "nan,1"}) {
    EXPECT_THROW(split_documents(bad, 0, 7), ConfigError) << bad;
  }
}

TEST(GptBlend, KeepsProportionsAtEveryMoment) {
  for (const std::vector<double>& weights :
       {std::vector<double>{1, 1}, {3, 1}, {0.7, 0.2, 0.1}, {5, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {1e-3, 1, 0.3}}) {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<int64_t> taken(weights.size(), 0);
    const std::vector<int32_t> order = blend(weights, 20000);
    for (size_t n = 0; n < order.size(); ++n) {
      ++taken[static_cast<size_t>(order[n])];
      for (size_t i = 0; i < weights.size(); ++i) {
        ASSERT_LT(std::abs(static_cast<double>(taken[i]) - weights[i] / sum * static_cast<double>(n + 1)), 1.0 + 1e-9);
      }
    }
  }
  EXPECT_THROW(blend({1, 0}, 5), ConfigError);
  EXPECT_THROW(blend({1, -1}, 5), ConfigError);
}

TEST_F(GptDatasetTest, BlendsCorporaByWeight) {
  write_tokens(folder_.path() / "b", counting_documents(30, 30000));
  options_.sources = {{folder_.path() / "a", 3}, {folder_.path() / "b", 1}};
  options_.index.num_samples = 400;
  const GptDataset data(options_);
  EXPECT_EQ(data.size(), 400);
  const torch::Tensor from_b = (all(data).first.select(1, 0) >= 30000).sum();
  EXPECT_EQ(from_b.item<int64_t>(), 100);
  EXPECT_TRUE(torch::equal(all(GptDataset(options_)).first, all(data).first));
  options_.index.num_samples = 0;
  const int64_t one_pass = GptDataset(options_).size();
  options_.sources.pop_back();
  EXPECT_GT(one_pass, GptDataset(options_).size());
}

TEST_F(GptDatasetTest, RejectsWrongDataBeforeTraining) {
  options_.vocab_size = 100;
  EXPECT_THROW(GptDataset{options_}, DataError);
  options_.vocab_size = 60000;
  GptDataset{options_};
  options_.index.split = "1,0,0";
  options_.index.part = 1;
  EXPECT_THROW(GptDataset{options_}, DataError);
  options_.index.part = 0;
  options_.index.sequence_length = 100000;
  EXPECT_THROW(GptDataset{options_}, DataError);
  options_.index.sequence_length = 8;
  options_.index.num_samples = int64_t{1} << 60;
  EXPECT_THROW(GptDataset{options_}, ConfigError);
  options_.index.num_samples = int64_t{1} << 45;
  EXPECT_THROW(GptDataset{options_}, ConfigError);
  options_.index.num_samples = 0;
  options_.sources[0].prefix = folder_.path() / "none";
  EXPECT_THROW(GptDataset{options_}, DataError);
  options_.sources.clear();
  EXPECT_THROW(GptDataset{options_}, ConfigError);
}

TEST_F(GptDatasetTest, ReadsTheConfiguration) {
  Json json = {{"case", "toy"},
               {"target", {{"metric", "loss"}, {"value", 1.0}, {"goal", "minimize"}}},
               {"data", {{"name", "toy"}, {"layout", "gpt"}, {"path", folder_.path().string()}}},
               {"config",
                {{"Model", {{"name", "gpt"}, {"vocab_size", 60000}}},
                 {"Data",
                  {{"Train", {{"dataset", {{"name", "gpt"}, {"split", "8,1,1"}, {"max_seq_len", 8}}}}},
                   {"Eval", {{"dataset", {{"name", "gpt"}, {"split", "8,1,1"}, {"max_seq_len", 8}}}}}}}}}};
  const auto make = [&](const std::string& part) {
    const WorkerConfig config = worker_config_of(json);
    return make_loader(config, part, 4, 1)->dataset().size();
  };
  EXPECT_GT(make("Train"), 5 * make("Eval"));
  Json& dataset = json["config"]["Data"]["Train"]["dataset"];
  write_tokens(folder_.path() / "b", counting_documents(30, 30000));
  EXPECT_THROW(make("Train"), ConfigError);  // which of the two?
  dataset["data_prefix"] = "a";
  const int64_t alone = make("Train");
  dataset["data_prefix"] = "a, b";
  dataset["data_weights"] = {0.5, 0.5};
  EXPECT_GT(make("Train"), alone);
  dataset["data_weights"] = {0.5};
  EXPECT_THROW(make("Train"), ConfigError);
  dataset["data_weights"] = {0.5, 0.0};
  EXPECT_THROW(make("Train"), ConfigError);
  dataset.erase("data_weights");
  dataset["mode"] = "Tarin";
  EXPECT_THROW(make("Train"), ConfigError);
  dataset.erase("mode");
  dataset["eos_ids"] = 3;
  EXPECT_THROW(make("Train"), ConfigError);
  dataset.erase("eos_ids");
  json["config"]["Model"]["vocab_size"] = 30010;
  EXPECT_THROW(make("Train"), DataError);
  json["config"]["Model"]["vocab_size"] = 60000;
  json["data"]["sha256"] = {{"a_ids.npy", std::string(64, '0')}};
  EXPECT_THROW(make("Train"), DataError);
}

}  // namespace
}  // namespace assay
