#include "param_server/server_checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "ps_test_tools.h"

namespace assay::ps {

namespace {

ShardState shard_state(int64_t step, const ServerId& place) {
  ShardState state{.step = step, .num_updates = step + 1, .tables = {}};
  for (const char* name : {"a", "empty"}) {
    const auto table = Table::make(f64_table(name, 2, {.name = "Adam"}, {.kind = InitRule::Kind::Zero}));
    if (std::string(name) == "a") {
      for (int64_t id = place.index; id < 12; id += place.num_servers) {
        const double value = static_cast<double>(id * 1000 + step);
        const RowBlock block = block_of(0, {id}, {value, value});
        table->init(block.ids, block.values.data());
      }
    }
    state.tables.push_back(table->state());
  }
  return state;
}

void flip_byte(const fs::path& path, int64_t from_end) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-from_end, std::ios::end);
  const char byte = static_cast<char>(file.peek() ^ 1);
  file.seekp(-from_end, std::ios::end);
  file.put(byte);
}

std::vector<ShardState> newest(const fs::path& folder, const ServerId& place,
                               std::vector<std::string>* damaged = nullptr) {
  return load_newest_server_checkpoint(folder, place, [&](const std::string& reason) {
    if (damaged) damaged->push_back(reason);
  });
}

}  // namespace

TEST(PsServerCheckpoint, ReadsBackWhatItWrote) {
  const TempFolder folder;
  const ServerId place{1, 2};
  const fs::path path = write_server_checkpoint(folder.path() / "new", shard_state(7, place), place, 3);
  EXPECT_EQ(path.filename(), "step_7.server_1_of_2.safetensors");
  const auto states = load_server_checkpoint(folder.path() / "new", 7, place);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].step, 7);
  EXPECT_EQ(states[0].num_updates, 8);
  const ShardState wanted = shard_state(7, place);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(states[0].tables[i].spec, wanted.tables[i].spec);
    EXPECT_EQ(states[0].tables[i].ids, wanted.tables[i].ids);
    EXPECT_EQ(states[0].tables[i].weights, wanted.tables[i].weights);
    EXPECT_EQ(states[0].tables[i].first, wanted.tables[i].first);
    EXPECT_EQ(states[0].tables[i].second, wanted.tables[i].second);
  }
}

TEST(PsServerCheckpoint, LoadsTheNewestWholeOne) {
  const TempFolder folder;
  const ServerId place{0, 1};
  for (const int64_t step : {9, 10, 100}) write_server_checkpoint(folder.path(), shard_state(step, place), place, 3);
  EXPECT_EQ(newest(folder.path(), place).at(0).step, 100);
  flip_byte(folder.path() / server_checkpoint_name(100, place), 3);
  std::vector<std::string> damaged;
  EXPECT_EQ(newest(folder.path(), place, &damaged).at(0).step, 10);
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_NE(damaged[0].find("step_100.server_0_of_1"), std::string::npos);
  fs::resize_file(folder.path() / server_checkpoint_name(10, place), 100);
  EXPECT_EQ(newest(folder.path(), place).at(0).step, 9);
  EXPECT_THROW(load_server_checkpoint(folder.path(), 10, place), DataError);
  EXPECT_THROW(load_server_checkpoint(folder.path(), 11, place), DataError);
}

TEST(PsServerCheckpoint, DetectsDamageAnywhere) {
  const TempFolder folder;
  const ServerId place{0, 1};
  const fs::path path = write_server_checkpoint(folder.path(), shard_state(5, place), place, 1);
  const auto size = static_cast<int64_t>(fs::file_size(path));
  for (int64_t at = 1; at <= size; at += 7) {
    flip_byte(path, at);
    // A blank that fills up the header means nothing; everything else does.
    bool refused = newest(folder.path(), place).empty();
    flip_byte(path, at);
    std::ifstream file(path, std::ios::binary);
    file.seekg(-at, std::ios::end);
    if (file.peek() != ' ') {
      EXPECT_TRUE(refused) << "byte " << size - at;
    }
  }
  EXPECT_EQ(newest(folder.path(), place).size(), 1u);
}

TEST(PsServerCheckpoint, RemovesOldOnesAndLeftovers) {
  const TempFolder folder;
  const ServerId place{0, 2};
  for (int64_t step = 1; step <= 5; ++step) {
    write_server_checkpoint(folder.path(), shard_state(step, {1, 2}), {1, 2}, 100);
    write_server_checkpoint(folder.path(), shard_state(step, place), place, 2);
  }
  const fs::path unfinished = folder.path() / (server_checkpoint_name(6, place) + ".123.tmp");
  const fs::path of_other = folder.path() / (server_checkpoint_name(6, {1, 2}) + ".123.tmp");
  std::ofstream(unfinished) << "x";
  std::ofstream(of_other) << "x";
  EXPECT_EQ(newest(folder.path(), place).at(0).step, 5);
  EXPECT_FALSE(fs::exists(unfinished));
  EXPECT_TRUE(fs::exists(of_other));
  EXPECT_FALSE(fs::exists(folder.path() / server_checkpoint_name(3, place)));
  EXPECT_TRUE(fs::exists(folder.path() / server_checkpoint_name(4, place)));
  EXPECT_TRUE(fs::exists(folder.path() / server_checkpoint_name(1, {1, 2})));  // not ours
}

TEST(PsServerCheckpoint, ReadsAllFilesForAnotherNumberOfServers) {
  const TempFolder folder;
  for (const int index : {0, 1, 2}) {
    write_server_checkpoint(folder.path(), shard_state(4, {index, 3}), {index, 3}, 9);
    if (index < 2) write_server_checkpoint(folder.path(), shard_state(6, {index, 3}), {index, 3}, 9);
  }
  EXPECT_EQ(newest(folder.path(), {0, 2}).size(), 3u);  // of step 4: of step 6 one is missing
  EXPECT_EQ(newest(folder.path(), {0, 2}).at(0).step, 4);
  EXPECT_EQ(newest(folder.path(), {1, 3}).at(0).step, 6);
}

}  // namespace assay::ps
