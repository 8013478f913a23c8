#include "monitor/disturbance.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "base/files.h"
#include "monitor/sample.h"

using namespace assay;

namespace {

constexpr int64_t kStart = 1'794'771'785'000'000;
constexpr int64_t kSecond = 1'000'000;

class DisturbanceTest : public ::testing::Test {
 protected:
  // `count` samples of a second each; `change` is given the number of each.
  template <typename Change>
  NodeSamples node(const std::string& host, int count, Change change) {
    const fs::path file = folder_.path() / (host + ".jsonl");
    std::ofstream out(file);
    for (int i = 0; i < count; ++i) {
      Sample sample;
      sample.time_us = kStart + (i + 1) * kSecond;
      sample.interval_s = 1;
      sample.cores = 2;
      sample.cpu_busy = 0.9;
      sample.cpu_own = 0.88;
      sample.cpu_foreign = 0.02;
      sample.cpu_other_runs = 0;
      sample.cpu_steal = 0.001;
      sample.pressure_memory_some = 0;
      sample.swap_bytes_per_s = 0;
      sample.net_rx_bytes_per_s = 1000;
      sample.net_tx_bytes_per_s = 1000;
      change(i, sample);
      out << to_line(to_json(sample)) << "\n";
    }
    return {host, file};
  }
  NodeSamples quiet(const std::string& host = "quiet") {
    return node(host, 40, [](int, Sample&) {});
  }
  Disturbance look(const NodeSamples& what, DisturbanceOptions options = {}) {
    return find_disturbance({what}, kStart, kStart + 40 * kSecond, options);
  }
  TempFolder folder_;
};

}  // namespace

TEST_F(DisturbanceTest, PassesAQuietMachine) {
  const Disturbance found = look(quiet());
  EXPECT_EQ(found.suspect, std::vector<std::string>{});
  const Json& node = found.summary["nodes"][0];
  EXPECT_EQ(node["samples"], 40);
  EXPECT_DOUBLE_EQ(node["seconds"].get<double>(), 40);
  EXPECT_NEAR(node["figures"]["cpu_own"]["mean"].get<double>(), 0.88, 1e-9);
  EXPECT_TRUE(node["figures"]["power_w"].is_null());
  EXPECT_TRUE(node["energy_j"].is_null()) << "power is not known, so energy is not 0";
  EXPECT_TRUE(found.summary["energy_j"].is_null());
  EXPECT_TRUE(node["devices"].is_null());
}

TEST_F(DisturbanceTest, ReportsOtherProcessesWithFigures) {
  const Disturbance found = look(node("node1", 40, [](int i, Sample& s) { s.cpu_foreign = i < 37 ? 0.9 : 0.0; }));
  ASSERT_EQ(found.suspect.size(), 1u);
  EXPECT_EQ(
      found.suspect[0],
      "node1: other processes used a share of the processor of 0.83 on average (limit 0.10), 37 of 40 samples above "
      "0.25");
}

TEST_F(DisturbanceTest, NamesOtherRunsOfAssay) {
  const Disturbance found = look(node("n", 40, [](int, Sample& s) { s.cpu_foreign = 0.6, s.cpu_other_runs = 0.5; }));
  ASSERT_EQ(found.suspect.size(), 1u);
  EXPECT_NE(found.suspect[0].find("0.50 of it other runs of assay"), std::string::npos) << found.suspect[0];
}

TEST_F(DisturbanceTest, LimitsEachFigure) {
  const auto only = [&](auto change, const std::string& words, DisturbanceOptions options = {}) {
    const Disturbance found = look(node("n", 40, change), options);
    ASSERT_EQ(found.suspect.size(), 1u) << words;
    EXPECT_NE(found.suspect[0].find(words), std::string::npos) << found.suspect[0];
  };
  only([](int, Sample& s) { s.cpu_steal = 0.2; }, "the hypervisor withheld a share of the processor of 0.20");
  only([](int, Sample& s) { s.pressure_memory_some = 0.05; }, "waited for memory");
  only([](int, Sample& s) { s.swap_bytes_per_s = 5e6; }, "swapped at 5.0 MB/s");
  only([](int, Sample& s) { s.net_rx_bytes_per_s = 100e6; }, "came over the network");
  only([](int, Sample& s) { s.net_tx_bytes_per_s = 100e6; }, "went over the network");
  const auto busy_network = node("n", 40, [](int, Sample& s) { s.net_rx_bytes_per_s = 100e6; });
  EXPECT_TRUE(look(busy_network, {.uses_network = true}).suspect.empty()) << "the job itself uses it";
}

TEST_F(DisturbanceTest, ReportsAFifthOfHighSamplesButNotAFew) {
  const auto with = [&](int count) {
    return look(node("n", 40, [count](int i, Sample& s) { s.cpu_foreign = i < count ? 0.3 : 0.0; })).suspect.size();
  };
  EXPECT_EQ(with(7), 0u);
  EXPECT_EQ(with(8), 1u);
}

TEST_F(DisturbanceTest, CountsOnlyTheTimeInBetween) {
  const NodeSamples what = node("n", 40, [](int i, Sample& s) { s.cpu_foreign = i < 20 ? 0.9 : 0.0; });
  const auto suspect = [&](int64_t from, int64_t until) {
    return find_disturbance({what}, kStart + from, kStart + until).suspect.size();
  };
  EXPECT_EQ(suspect(0, 20 * kSecond), 1u);
  EXPECT_EQ(suspect(20 * kSecond, 40 * kSecond), 0u);
  const Disturbance half = find_disturbance({what}, kStart + 19 * kSecond + kSecond / 2, kStart + 21 * kSecond);
  EXPECT_NEAR(half.summary["nodes"][0]["figures"]["cpu_foreign"]["mean"].get<double>(), 0.3, 1e-6)
      << "half a second at 0.9, one at 0";
  EXPECT_EQ(find_disturbance({what}, 0, 1).summary["nodes"][0]["samples"], 0);
}

TEST_F(DisturbanceTest, SuspectsAMachineThatStoodStill) {
  const Disturbance found = look(node("n", 40, [](int i, Sample& s) {
    if (i == 30) s.interval_s = 12.5;
  }));
  ASSERT_EQ(found.suspect.size(), 1u);
  EXPECT_EQ(found.suspect[0], "n: the machine stood still once, for 12.5 s at most, where samples come every 1.0 s");
}

TEST_F(DisturbanceTest, ComputesEnergyAsPowerTimesTime) {
  const Disturbance found = find_disturbance(
      {node("a", 40, [](int, Sample& s) { s.power_w = 100; }),
       node("b", 40,
            [](int, Sample& s) {
              s.power_w = 50;
              s.devices = Json::parse(R"([{"index":0,"power_w":300,"name":"x"},{"index":1,"power_w":100}])");
            })},
      kStart, kStart + 40 * kSecond);
  EXPECT_NEAR(found.summary["energy_j"].get<double>(), 6000, 1e-6);
  EXPECT_NEAR(found.summary["nodes"][1]["devices_energy_j"].get<double>(), 16000, 1e-6);
  EXPECT_NEAR(found.summary["nodes"][1]["devices"][0]["power_w"]["mean"].get<double>(), 300, 1e-9);
  const Disturbance partly =
      look(node("c", 40, [](int i, Sample& s) { s.power_w = i < 20 ? Sample::Figure(100.0) : std::nullopt; }));
  EXPECT_TRUE(partly.summary["energy_j"].is_null()) << "half of the time is not known";
}

TEST_F(DisturbanceTest, ReadsDamagedFilesAsFarAsTheyGo) {
  NodeSamples what = quiet();
  std::ofstream(what.file, std::ios::app) << "garbage\n[1]\n" << std::string(1 << 20, 'x') << "\n{\"time_us\":17";
  const Disturbance found = look(what);
  EXPECT_EQ(found.summary["nodes"][0]["samples"], 40);
  EXPECT_EQ(found.summary["nodes"][0]["damaged_lines"], 4);
  EXPECT_TRUE(found.suspect.empty());
  EXPECT_EQ(look({"gone", folder_.path() / "no such file"}).summary["nodes"][0]["samples"], 0);
  EXPECT_EQ(look({"folder", folder_.path()}).summary["nodes"][0]["samples"], 0);
}

TEST_F(DisturbanceTest, SurvivesRandomDamage) {
  const NodeSamples what = node("n", 4, [](int, Sample& s) { s.devices = Json::parse(R"([{"power_w":3}])"); });
  const std::string good = read_file(what.file);
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    std::string text = good;
    for (int n = 0; n < 6; ++n) text[random() % text.size()] = static_cast<char>(random());
    std::ofstream(what.file, std::ios::binary | std::ios::trunc) << text.substr(0, random() % (text.size() + 1));
    look(what);
  }
}
