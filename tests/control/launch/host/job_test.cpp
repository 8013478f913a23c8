#include "launch/host/job.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "../job_support.h"
#include "base/error.h"

using namespace assay;

namespace {

LaunchRequest full_request(const JobFolder& folder) {
  LaunchRequest out = folder.request("echo 'a b'", 2, 2);
  out.command.env["SECRET"] = "s3cret\n\"x\"";
  out.ranks.node_rank = 1;
  out.attempt = 3;
  out.site.visible_devices = "CUDA_VISIBLE_DEVICES";
  out.command.framework = "paddle_2.5";
  out.site.lease_s = 2.5;
  out.site.monitor_interval_s = 1;
  out.staging.collect = {"output/model.safetensors"};
  out.staging.staged = {"data/x"};
  out.site.setup = {"code/vendor-x/setup"};
  out.site.setup_env = {{"WHO", "x"}};
  out.placement.nodes[1].device_addresses = {{2, "192.168.100.101"}};
  out.placement.nodes[1].host.address = "10.0.0.2";
  out.placement.nodes[1].host.identity_file = "/home/me/key";
  return out;
}

void put_text(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

}  // namespace

TEST(Job, ComesBackAsItWasWritten) {
  const JobFolder folder;
  const LaunchRequest request = full_request(folder);
  write_job(folder.step(), request);
  const LaunchRequest back = read_job(folder.step(), 1);
  EXPECT_EQ(to_json(back), to_json(request));
  EXPECT_EQ(back.command.env.at("SECRET"), "s3cret\n\"x\"");
  EXPECT_EQ(back.folder, folder.step());
  EXPECT_EQ(back.placement.nodes[1].host.address, "10.0.0.2");
  EXPECT_EQ(back.placement.nodes[1].devices, (std::vector<int>{2, 3}));
  EXPECT_EQ(back.placement.nodes[1].device_addresses, request.placement.nodes[1].device_addresses);
  EXPECT_EQ(back.site.setup, request.site.setup);
  EXPECT_EQ(back.site.setup_env, request.site.setup_env);
}

TEST(Job, KeepsSecretsFromOthersAndKeysFromHosts) {
  const JobFolder folder;
  write_job(folder.step(), full_request(folder));
  const fs::path path = folder.step() / "job.node1.json";
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_FALSE(mentions(read_file(path), "/home/me/key"));
}

TEST(Job, NamesFileAndFieldInErrors) {
  const JobFolder folder;
  const fs::path path = folder.step() / "job.node1.json";
  const Json good = to_json(full_request(folder));
  const auto error_with = [&](const char* key, const Json& value) {
    Json bad = good;
    bad[key] = value;
    ::unlink(path.c_str());
    put_text(path, to_line(bad));
    ::chmod(path.c_str(), 0600);
    return message_of<DataError>([&] { read_job(folder.step(), 1); });
  };
  const std::vector<std::pair<const char*, Json>> wrong = {{"argv", "sh"},
                                                           {"argv", Json::array()},
                                                           {"argv", Json::array({1})},
                                                           {"nproc", 0},
                                                           {"nproc", 1.5},
                                                           {"nproc", 1e30},
                                                           {"nnodes", -1},
                                                           {"node_rank", 2},
                                                           {"env", "x"},
                                                           {"env", {{"A=B", "1"}}},
                                                           {"env", {{"A", 1}}},
                                                           {"lease_s", "long"},
                                                           {"lease_s", 0},
                                                           {"attempt", 0},
                                                           {"nodes", {{}}},
                                                           {"nodes", Json::array()},
                                                           {"cwd", "relative"},
                                                           {"cwd", nullptr},
                                                           {"format", 2},
                                                           {"colour", "red"},
                                                           {"collect", {{"a", 1}}},
                                                           {"tree_mark", std::string("a\0b", 3)}};
  for (const auto& [key, value] : wrong) {
    if (std::string(key) == "nodes" && value.empty()) continue;  // a node started by itself has none
    const std::string message = error_with(key, value);
    EXPECT_TRUE(mentions(message, path.string())) << key << ": " << message;
    EXPECT_TRUE(mentions(message, std::string(key).substr(0, 3))) << key << ": " << message;
  }
}

TEST(Job, RejectsGarbage) {
  const JobFolder folder;
  const fs::path path = folder.step() / "job.node1.json";
  const std::string good = to_pretty(to_json(full_request(folder)));
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = good;
    for (int k = 0; k < 3; ++k) text[random() % text.size()] = static_cast<char>(random());
    if (i % 4 == 0) text.resize(random() % text.size());
    ::unlink(path.c_str());
    put_text(path, text);
    ::chmod(path.c_str(), 0600);
    try {
      read_job(folder.step(), 1);
    } catch (const DataError& error) {
      ++refused;
      EXPECT_TRUE(mentions(error.what(), path.string())) << error.what();
    }
  }
  EXPECT_GT(refused, 200);
}

TEST(Job, RejectsWhatIsNotOurPlainFile) {
  const JobFolder folder;
  const fs::path path = folder.step() / "job.node1.json";
  const auto refusal = [&] { return message_of<DataError>([&] { read_job(folder.step(), 1); }); };
  EXPECT_TRUE(mentions(refusal(), "cannot read"));
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(mentions(refusal(), "not a regular file"));
  ::unlink(path.c_str());
  write_job(folder.step(), full_request(folder));
  ::chmod(path.c_str(), 0666);
  EXPECT_TRUE(mentions(refusal(), "nobody else may write"));
  ::chmod(path.c_str(), 0600);
  EXPECT_NO_THROW(read_job(folder.step(), 1));
  fs::rename(path, folder.step() / "elsewhere");
  fs::create_symlink("elsewhere", path);
  EXPECT_TRUE(mentions(refusal(), "link"));
  ::unlink(path.c_str());
  fs::rename(folder.step() / "elsewhere", folder.step() / "job.node0.json");
  EXPECT_TRUE(mentions(message_of<DataError>([&] { read_job(folder.step(), 0); }), "node_rank is 1"));
}

TEST(Job, DoesNotReadAFileThatIsTooLarge) {
  const JobFolder folder;
  const fs::path path = folder.top() / "large";
  put_text(path, std::string(1001, 'x'));
  EXPECT_TRUE(mentions(message_of<DataError>([&] { read_limited(path, 1000); }), "larger than 1000"));
  EXPECT_EQ(read_limited(path, 1001).size(), 1001u);
}
