#include "data/loader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "data/factory.h"
#include "idx_file.h"

namespace assay {
namespace {

// Sample i is the number i; reading takes different times, so threads overtake each other.
class Numbers final : public Dataset {
 public:
  explicit Numbers(int64_t size, int64_t fails_at = -1) : size_(size), fails_at_(fails_at) {}
  int64_t size() const override { return size_; }
  std::string hash() const override { return "numbers"; }
  Batch gather(std::span<const int64_t> indices, int64_t epoch) const override {
    {
      std::lock_guard lock(mutex_);
      readers_.insert(std::this_thread::get_id());
    }
    std::this_thread::sleep_for(std::chrono::microseconds((indices[0] * 37 + epoch) % 5 * 200));
    torch::Tensor values = torch::empty({static_cast<int64_t>(indices.size())}, torch::kLong);
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == fails_at_) throw DataError("sample is damaged");
      values[static_cast<int64_t>(i)] = indices[i] + 1000 * epoch;
    }
    return {{values, values}, static_cast<int64_t>(indices.size())};
  }
  size_t num_readers() const { return readers_.size(); }  // threads that ever read a sample

 private:
  int64_t size_;
  int64_t fails_at_;
  mutable std::mutex mutex_;
  mutable std::set<std::thread::id> readers_;
};

std::vector<int64_t> all_values(Loader& loader, int64_t epoch, int64_t consumed_samples = 0) {
  std::vector<int64_t> values;
  loader.start(epoch, consumed_samples);
  while (const auto batch = loader.next()) {
    const auto* data = batch->tensors[0].data_ptr<int64_t>();
    values.insert(values.end(), data, data + batch->num_samples);
  }
  return values;
}

Sampler::Options shuffled(int64_t num_samples, int64_t batch_size) {
  return {.num_samples = num_samples, .batch_size = batch_size, .shuffle = true, .drop_last = false, .seed = 5};
}

// What the replicas have of a micro-batch is together that micro-batch of one process, whatever their number.
TEST(Sampler, SharesEveryMicroBatchAmongReplicas) {
  constexpr int64_t kSamples = 103, kWhole = 24, kParts = 3;
  for (const int64_t replicas : {1, 2, 4}) {
    std::vector<Sampler> samplers;
    for (int64_t r = 0; r < replicas; ++r) {
      Sampler::Options options = shuffled(kSamples, kWhole / replicas);
      options.num_replicas = replicas;
      options.replica = r;
      options.num_parts = kParts;
      samplers.emplace_back(options);
    }
    std::set<int64_t> seen;
    ASSERT_EQ(samplers[0].num_batches(), 5);
    for (int64_t batch = 0; batch < 5; ++batch) {
      const int64_t whole = samplers[0].whole_batch_size(batch * kWhole);
      EXPECT_EQ(whole, batch < 4 ? kWhole : kSamples - 4 * kWhole);
      for (const Sampler& sampler : samplers) {
        const std::vector<int64_t> own = sampler.own_positions(batch * kWhole);
        EXPECT_NEAR(static_cast<double>(own.size()), static_cast<double>(whole) / static_cast<double>(replicas), 1);
        for (size_t i = 0; i < own.size(); ++i) {
          EXPECT_TRUE(seen.insert(own[i]).second);
          if (batch == 4) continue;
          const auto part = static_cast<int64_t>(i) / (static_cast<int64_t>(own.size()) / kParts);
          EXPECT_EQ((own[i] - batch * kWhole) / (kWhole / kParts), part);
        }
      }
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(kSamples));
  }
}

// Training leaves out a rest that does not give every replica a sample; an evaluation measures it.
TEST(Sampler, SharesARestSmallerThanTheReplicas) {
  Sampler::Options options = shuffled(9, 2);
  options.num_replicas = 4;
  options.replica = 0;
  EXPECT_EQ(Sampler(options).num_batches(), 2);
  EXPECT_EQ(Sampler(options).own_positions(8), std::vector<int64_t>());
  Loader loader(std::make_shared<Numbers>(9), options, {.num_workers = 0});
  loader.start(0);
  EXPECT_EQ(loader.next()->num_samples, 2);
  const Batch rest = *loader.next();
  EXPECT_EQ(rest.num_samples, 0);
  EXPECT_EQ(rest.whole_size(), 1);
  EXPECT_EQ(rest.tensors[0].size(0), 1) << "one sample that does not count";
  options.keep_all = false;
  EXPECT_EQ(Sampler(options).num_batches(), 1);
}

TEST(Sampler, PermutesByAFunctionOfSeedAndEpoch) {
  Sampler::Options options = shuffled(1000, 10);
  const std::vector<int64_t> order = Sampler(options).order(3);
  std::set<int64_t> seen(order.begin(), order.end());
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_EQ(order, Sampler(options).order(3));
  EXPECT_NE(order, Sampler(options).order(4));
  options.seed = 6;
  EXPECT_NE(order, Sampler(options).order(3));
  options.shuffle = false;
  std::vector<int64_t> straight(1000);
  std::iota(straight.begin(), straight.end(), 0);
  EXPECT_EQ(Sampler(options).order(3), straight);
}

// Chi-square over which value comes first: 9 degrees of freedom, 0.1 % critical value 27.9.
TEST(Sampler, DrawsEveryPositionEquallyOften) {
  std::vector<int> counts(10, 0);
  constexpr int kDraws = 20000;
  const Sampler sampler(shuffled(10, 1));
  for (int epoch = 0; epoch < kDraws; ++epoch) ++counts[sampler.order(epoch)[0]];
  double chi2 = 0;
  for (const int count : counts) chi2 += std::pow(count - kDraws / 10.0, 2) / (kDraws / 10.0);
  EXPECT_LT(chi2, 27.9);
}

TEST(Sampler, CountsBatches) {
  Sampler::Options options = shuffled(25, 10);
  EXPECT_EQ(Sampler(options).num_batches(), 3);
  options.drop_last = true;
  EXPECT_EQ(Sampler(options).num_batches(), 2);
  options.batch_size = 26;
  EXPECT_THROW(Sampler{options}, ConfigError);
  options.batch_size = 0;
  EXPECT_THROW(Sampler{options}, ConfigError);
}

TEST(Loader, GivesTheSameBatchesWithAnyNumberOfThreads) {
  const auto data = std::make_shared<Numbers>(103);
  Loader alone(data, shuffled(103, 10), {.num_workers = 0, .prefetch = 1});
  const std::vector<int64_t> expected = all_values(alone, 2);
  EXPECT_EQ(expected.size(), 103u);
  for (const int workers : {1, 2, 4, 9}) {
    for (const int prefetch : {1, 3, 50}) {
      Loader loader(data, shuffled(103, 10), {.num_workers = workers, .prefetch = prefetch});
      EXPECT_EQ(all_values(loader, 2), expected) << workers << " threads, prefetch " << prefetch;
    }
  }
}

TEST(Loader, StartsAtAPosition) {
  const auto data = std::make_shared<Numbers>(95);
  Loader loader(data, shuffled(95, 10), {.num_workers = 2, .prefetch = 4});
  const std::vector<int64_t> whole = all_values(loader, 1);
  const std::vector<int64_t> rest = all_values(loader, 1, 70);
  EXPECT_EQ(rest, std::vector<int64_t>(whole.begin() + 70, whole.end()));
  EXPECT_TRUE(all_values(loader, 1, 95).empty());
  EXPECT_TRUE(loader.at_end());
  // Batches of another size continue behind the sample that was reached, and leave nothing out.
  Loader larger(data, shuffled(95, 16), {.num_workers = 2, .prefetch = 4});
  EXPECT_EQ(all_values(larger, 1, 70), rest);
  EXPECT_EQ(larger.num_batches(70), 2);
}

TEST(Loader, MayBeLeftInTheMiddle) {
  const auto data = std::make_shared<Numbers>(100);
  for (int round = 0; round < 20; ++round) {
    Loader loader(data, shuffled(100, 5), {.num_workers = 3, .prefetch = 4});
    loader.start(round);
    for (int i = 0; i < round; ++i) loader.next();
    loader.start(round + 1, 10);
    loader.next();
  }
}

TEST(Loader, KeepsItsThreadsForTheNextEpochs) {
  const auto data = std::make_shared<Numbers>(40);
  {
    Loader loader(data, shuffled(40, 5), {.num_workers = 1, .prefetch = 2});
    std::set<std::vector<int64_t>> epochs;
    for (int64_t epoch = 0; epoch < 8; ++epoch) epochs.insert(all_values(loader, epoch));
    EXPECT_EQ(epochs.size(), 8u);
  }
  EXPECT_EQ(data->num_readers(), 1u);
}

TEST(Loader, ThrowsAFailureAtItsBatch) {
  const auto data = std::make_shared<Numbers>(40, /*fails_at=*/25);
  const Sampler::Options straight{.num_samples = 40, .batch_size = 10};
  for (const int workers : {0, 1, 4}) {
    Loader loader(data, straight, {.num_workers = workers, .prefetch = 4});
    loader.start(0);
    EXPECT_TRUE(loader.next());
    EXPECT_TRUE(loader.next());
    EXPECT_THROW(loader.next(), DataError);
  }
}

class FactoryTest : public testing::Test {
 protected:
  FactoryTest() {
    write_toy_images(folder_.path(), "train", 40, 8);
    write_toy_images(folder_.path(), "t10k", 20, 8);
    json_ = {{"case", "toy"},
             {"target", {{"metric", "accuracy"}, {"value", 0.5}, {"goal", "maximize"}}},
             {"data", {{"name", "toy"}, {"layout", "idx"}, {"path", folder_.path().string()}}},
             {"config", {{"Data", {{"Train", {{"dataset", {{"name", "idx_images"}, {"split", "train"}}}}}}}}}};
  }
  std::unique_ptr<Loader> make() {
    config_ = worker_config_of(json_);
    return make_loader(config_, "Train", 16, 1);
  }
  TempFolder folder_{"factory"};
  Json json_;
  WorkerConfig config_;
};

TEST_F(FactoryTest, BuildsFromTheSections) {
  json_["config"]["Data"]["Train"]["loader"] = {{"num_workers", 0}, {"prefetch", 2}};
  const auto loader = make();
  ASSERT_TRUE(loader);
  EXPECT_EQ(loader->dataset().size(), 40);
  EXPECT_EQ(loader->num_batches(), 2);  // training drops the last, incomplete batch
  EXPECT_FALSE(make_loader(config_, "Test", 16, 1));
}

TEST_F(FactoryTest, ThrowsTypedErrors) {
  Json& train = json_["config"]["Data"]["Train"];
  train["dataset"]["flipp"] = true;
  EXPECT_THROW(make(), ConfigError);
  train["dataset"].erase("flipp");
  train["dataset"]["input_dir"] = "/no/such/folder";
  EXPECT_THROW(make(), DataError);
  train["dataset"].erase("input_dir");
  train["dataset"]["std"] = 0.0;
  EXPECT_THROW(make(), ConfigError);
}

TEST_F(FactoryTest, RejectsOtherBytesThanDeclaredInTheClosedDivision) {
  json_["data"]["sha256"] = {{"train-labels-idx1-ubyte.gz", std::string(64, '0')}};
  EXPECT_THROW(make(), DataError);
  json_["division"] = "open";
  EXPECT_TRUE(make());
}

}  // namespace
}  // namespace assay
