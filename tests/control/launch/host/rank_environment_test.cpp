#include "launch/host/rank_environment.h"

#include <gtest/gtest.h>

#include "../job_support.h"
#include "base/error.h"
#include "base/text.h"

using namespace assay;

namespace {

using Variables = std::map<std::string, std::string>;

LaunchRequest on_two_hosts(const JobFolder& folder, const std::string& framework) {
  LaunchRequest request = folder.request("true", 2, 2);
  request.command.framework = framework;
  request.ranks.node_rank = 1;
  request.command.env["MASTER_ADDR"] = "10.0.0.1";
  request.command.env["MASTER_PORT"] = "4321";
  request.placement.nodes[0].host.address = "10.0.0.1";
  request.placement.nodes[1].host.address = "10.0.0.2";
  request.placement.nodes[1].devices = {6, 7};
  return request;
}

Variables of_rank(const LaunchRequest& request, int local_rank) {
  return rank_environment(request, local_rank, node_environment(request));
}

}  // namespace

TEST(RankEnvironment, HasTheUsualVariablesOfEveryFramework) {
  const JobFolder folder;
  LaunchRequest request = on_two_hosts(folder, "pytorch_1.13");
  request.site.visible_devices = "CUDA_VISIBLE_DEVICES";
  const Variables env = of_rank(request, 1);
  const Variables wanted = {{"RANK", "3"},
                            {"WORLD_SIZE", "4"},
                            {"LOCAL_RANK", "1"},
                            {"NODE_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "10.0.0.1"},
                            {"MASTER_PORT", "4321"},
                            {"CUDA_VISIBLE_DEVICES", "6,7"}};
  for (const auto& [name, value] : wanted) EXPECT_EQ(env.at(name), value) << name;
  EXPECT_EQ(env.count("PADDLE_TRAINER_ID"), 0u);
  EXPECT_EQ(env.count("RANK_TABLE_FILE"), 0u);
}

TEST(RankEnvironment, NamesDevicesOnlyWhereAVariableIs) {
  const JobFolder folder;
  const Variables env = of_rank(on_two_hosts(folder, "libtorch"), 0);
  EXPECT_EQ(env.count("CUDA_VISIBLE_DEVICES"), 0u);
  EXPECT_EQ(env.count(""), 0u);
}

TEST(RankEnvironment, ShowsPaddleRanksEveryEndpoint) {
  const JobFolder folder;
  LaunchRequest request = on_two_hosts(folder, "paddle_2.5");
  request.command.env[kPaddleEndpoints] = paddle_endpoints(request, {{100, 101}, {200, 201}});
  const Variables env = of_rank(request, 0);
  EXPECT_EQ(env.at("PADDLE_TRAINER_ENDPOINTS"), "10.0.0.1:100,10.0.0.1:101,10.0.0.2:200,10.0.0.2:201");
  EXPECT_EQ(env.at("PADDLE_CURRENT_ENDPOINT"), "10.0.0.2:200");
  EXPECT_EQ(env.at("PADDLE_TRAINER_ID"), "2");
  EXPECT_EQ(env.at("PADDLE_TRAINERS_NUM"), "4");
  EXPECT_EQ(env.at("TRAINING_ROLE"), "TRAINER");
  EXPECT_EQ(env.at("RANK"), "2");
  request.command.env[kPaddleEndpoints] = "10.0.0.1:100";
  EXPECT_TRUE(mentions(message_of<ConfigError>([&] { of_rank(request, 0); }), "names 1 ranks, the job has 4"));
}

TEST(RankEnvironment, LetsPaddleFindPortsOnOneHost) {
  const JobFolder folder;
  LaunchRequest request = folder.request("true", 1, 3);
  request.command.framework = "paddle";
  request.placement.nodes.clear();
  const Variables env = of_rank(request, 2);
  const auto endpoints = split(env.at("PADDLE_TRAINER_ENDPOINTS"), ',');
  ASSERT_EQ(endpoints.size(), 3u);
  EXPECT_EQ(env.at("PADDLE_CURRENT_ENDPOINT"), endpoints[2]);
  EXPECT_NE(endpoints[0], endpoints[1]);
  request.ranks.nnodes = 2;
  EXPECT_THROW(node_environment(request), ConfigError) << "hosts that nobody knows";
}

TEST(RankEnvironment, GivesMindSporeATableOfRanks) {
  const JobFolder folder;
  const LaunchRequest request = on_two_hosts(folder, "mindspore");
  const Variables env = of_rank(request, 1);
  EXPECT_EQ(env.at("RANK_ID"), "3");
  EXPECT_EQ(env.at("RANK_SIZE"), "4");
  EXPECT_EQ(env.at("DEVICE_ID"), "7");
  const Json table = read_json_file(env.at("RANK_TABLE_FILE"));
  EXPECT_EQ(table["version"], "1.0");
  EXPECT_EQ(table["server_count"], "2");
  EXPECT_EQ(table["status"], "completed");
  EXPECT_EQ(table["server_list"][1]["server_id"], "10.0.0.2");
  EXPECT_EQ(table["server_list"][1]["device"],
            Json::parse(R"([{"device_id": "6", "device_ip": "10.0.0.2", "rank_id": "2"},
                            {"device_id": "7", "device_ip": "10.0.0.2", "rank_id": "3"}])"));
  EXPECT_TRUE(needs_rank_table(request));
  LaunchRequest alone = folder.request("true", 1, 2);
  alone.command.framework = "mindspore";
  alone.placement.nodes.clear();
  EXPECT_EQ(rank_table(alone)["server_list"][0]["device"][1]["rank_id"], "1");
}

TEST(RankEnvironment, PutsDeviceAddressesIntoTheTable) {
  const JobFolder folder;
  LaunchRequest request = on_two_hosts(folder, "mindspore");
  request.placement.nodes[0].device_addresses = {
      {0, "192.168.100.100"}, {1, "192.168.101.100"}, {5, "192.168.105.100"}};
  request.placement.nodes[1].device_addresses = {{7, "192.168.107.101"}};
  const Json table = rank_table(request);
  const auto address = [&](int node, int rank) { return table["server_list"][node]["device"][rank]["device_ip"]; };
  EXPECT_EQ(address(0, 0), "192.168.100.100");
  EXPECT_EQ(address(0, 1), "192.168.101.100");
  EXPECT_EQ(address(1, 0), "10.0.0.2") << "device 6 has none of its own";
  EXPECT_EQ(address(1, 1), "192.168.107.101");
  EXPECT_EQ(table["server_list"][1]["server_id"], "10.0.0.2");
}

TEST(RankEnvironment, KeepsTheJobsOwnTable) {
  const JobFolder folder;
  LaunchRequest request = on_two_hosts(folder, "mindspore");
  request.command.env["RANK_TABLE_FILE"] = "/etc/own_table.json";
  EXPECT_FALSE(needs_rank_table(request));
  EXPECT_EQ(of_rank(request, 0).at("RANK_TABLE_FILE"), "/etc/own_table.json");
  EXPECT_FALSE(needs_rank_table(on_two_hosts(folder, "pytorch")));
}
