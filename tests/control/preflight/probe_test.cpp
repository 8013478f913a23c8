#include "preflight/probe.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/process.h"
#include "base/time.h"
#include "base/version.h"
#include "launch/host/device_lock.h"

using namespace assay;

TEST(Probe, SaysWhoItIsAndWhatTimeItHas) {
  const int64_t before = now_us();
  const Json answer = answer_probe(Json::object());
  EXPECT_EQ(answer["assay"]["version"], version());
  EXPECT_EQ(answer["assay"]["commit"], commit());
  EXPECT_GE(answer["time_us"].get<int64_t>(), before);
  EXPECT_LE(answer["time_us"].get<int64_t>(), now_us());
  EXPECT_TRUE(answer["page_cache"].is_boolean());
  EXPECT_FALSE(answer.contains("disk")) << "what was not asked for is not there";
}

TEST(Probe, ReportsABusyPort) {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  const int port = ntohs(address.sin_port);
  const Json answer = answer_probe({{"ports", {port, 0, 70000}}});
  EXPECT_NE(answer["ports"][std::to_string(port)].get<std::string>().find("in use"), std::string::npos);
  EXPECT_EQ(answer["ports"]["0"], "not a port");
  EXPECT_EQ(answer["ports"]["70000"], "not a port");
}

TEST(Probe, CountsCoresOrTheVendorsDevices) {
  EXPECT_GE(answer_probe({{"hardware", "cpu"}})["devices"]["count"].get<int>(), 1);
  EXPECT_TRUE(answer_probe({{"hardware", "A100"}})["devices"]["count"].is_null()) << "not known is not 0";
  const Json said = answer_probe({{"hardware", "A100"}, {"device_command", {"/bin/echo", "4"}}});
  EXPECT_EQ(said["devices"]["output"], "4\n");
  const Json failed = answer_probe({{"hardware", "A100"}, {"device_command", {"/bin/false"}}});
  EXPECT_TRUE(failed["devices"]["error"].is_string());
  const Json absent = answer_probe({{"hardware", "A100"}, {"device_command", {"/no/such/program"}}});
  EXPECT_TRUE(absent["devices"]["error"].is_string());
}

// As the shell on the far side finds its work folder.
TEST(Probe, PutsTheWorkFolderInTheHomeFolder) {
  const TempFolder home;
  const char* before = std::getenv("HOME");
  const std::string kept = before ? before : "";
  ::setenv("HOME", home.path().c_str(), 1);
  const auto path_of = [](const char* given) { return answer_probe({{"disk", given}})["disk"]; };
  EXPECT_EQ(path_of("")["path"], (home.path() / ".assay").string());
  EXPECT_EQ(path_of("~/work")["path"], (home.path() / "work").string());
  EXPECT_EQ(path_of("work")["path"], (home.path() / "work").string());
  EXPECT_EQ(path_of("/no/such")["path"], "/no/such");
  EXPECT_GT(path_of("")["free_bytes"].get<double>(), 0);
  EXPECT_EQ(path_of("")["writable"], true);
  ::setenv("HOME", kept.c_str(), 1);
}

TEST(Probe, CountsOnlyHeldLocks) {
  const TempFolder folder;
  std::ofstream(folder.path() / "cpu-7.lock") << R"({"run":"old","user":"u","pid":"1"})";
  std::ofstream(folder.path() / "readme.txt") << "x";
  std::ofstream(folder.path() / "no_number.lock") << "x";
  EXPECT_EQ(held_locks(folder.path()), Json::array()) << "a file that nobody holds is no lock";
  {
    const DeviceLocks locks(folder.path(), {.hardware = "cpu", .devices = {2}, .run_id = "run-9"});
    const Json held = answer_probe({{"hardware", "cpu"}, {"locks", folder.path().string()}})["locks"];
    ASSERT_EQ(held.size(), 1u);
    EXPECT_EQ(held[0]["hardware"], "cpu");
    EXPECT_EQ(held[0]["index"], 2);
    EXPECT_EQ(held[0]["run"], "run-9");
    EXPECT_TRUE(held[0]["user"].is_string());
  }
  EXPECT_EQ(held_locks(folder.path()), Json::array());
  EXPECT_EQ(held_locks(folder.path() / "none"), Json::array());
}

TEST(Probe, SurvivesHostileQuestions) {
  for (const char* text :
       {"1", "[]", R"({"paths":1})", R"({"paths":[1]})", R"({"data":[{}]})", R"({"data":[1]})", R"({"ports":["a"]})",
        R"({"versions":{"a":"b"}})", R"({"versions":{"a":[]}})", R"({"hardware":"x","device_command":[1]})"}) {
    EXPECT_THROW(answer_probe(Json::parse(text)), DataError) << text;
  }
}

TEST(Probe, PrintsTheAnswerOfTheCommand) {
  const std::string assay = (fs::path(ASSAY_BINARY_DIR) / "bin/assay").string();
  const CapturedOutput good = capture({.argv = {assay, "probe", R"({"paths":["/"]})"}}, 60);
  ASSERT_TRUE(good.status.ok()) << good.err;
  EXPECT_EQ(parse_json(good.out, "answer")["paths"]["/"], true);
  EXPECT_EQ(capture({.argv = {assay, "probe", "{"}}, 60).status.code, kExitUsage);
}
