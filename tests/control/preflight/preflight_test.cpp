#include "preflight/preflight.h"

#include <gtest/gtest.h>

#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/time.h"
#include "base/version.h"
#include "preflight/probe.h"

using namespace assay;

namespace {

using Severity = PreflightProblem::Severity;

std::vector<NodePlace> hosts(int count, const std::vector<int>& devices = {0, 1, 2, 3, 4, 5, 6, 7}) {
  std::vector<NodePlace> out;
  for (int i = 1; i <= count; ++i) {
    out.push_back({.host = {.name = "node" + std::to_string(i), .work_dir = "/work"}, .devices = devices});
  }
  return out;
}

CapturedOutput says(const std::string& text, int code = 0, const std::string& err = "") {
  CapturedOutput out;
  out.status.code = code;
  out.out = text;
  out.err = err;
  return out;
}

// What a host without fault answers.
Json good_answer() {
  return {{"assay", {{"version", version()}, {"commit", commit()}}},
          {"host", "h"},
          {"paths", {{"/data", true}}},
          {"programs", {{"python3", "/usr/bin/python3"}}},
          {"data", Json::array({{{"path", "/data/set"}, {"exists", true}, {"wrong", Json::array()}}})},
          {"disk", {{"path", "/work"}, {"free_bytes", 5'000'000'000}, {"writable", true}}},
          {"ports", {{"29500", nullptr}}},
          {"devices", {{"count", 8}, {"output", nullptr}, {"error", nullptr}}},
          {"locks", Json::array()},
          {"versions", {{"python3", "Python 3.11.2"}}},
          {"page_cache", true},
          {"time_us", now_us()}};
}

PreflightNeeds all_needs() {
  return {.paths = {"/data"},
          .programs = {{"python3", ""}},
          .data = {{.path = "/data/set", .sha256 = {{"train.bin", std::string(64, 'a')}}, .check_hashes = true}},
          .min_free_bytes = 1'000'000'000,
          .master_ports = {29500},
          .hardware = "A100",
          .versions = {{"python3", {"python3", "--version"}}},
          .page_cache = true};
}

PreflightReport ask(const Json& answer, const PreflightNeeds& needs = all_needs(),
                    const std::vector<NodePlace>& places = hosts(1)) {
  return run_preflight(places, needs, [&](const auto&...) { return says(to_line(answer)); });
}

// The one problem that a change of a good answer brings.
PreflightProblem only_problem(const std::function<void(Json&)>& change) {
  Json answer = good_answer();
  change(answer);
  const PreflightReport report = ask(answer);
  EXPECT_EQ(report.problems.size(), 1u) << (report.problems.empty() ? "none" : report.problems.back().text());
  return report.problems.empty() ? PreflightProblem{} : report.problems[0];
}

}  // namespace

TEST(Preflight, PassesAHealthyHost) {
  const PreflightReport report = ask(good_answer());
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report.problems.empty()) << report.problems[0].text();
  EXPECT_EQ(report.hosts.at("node1")["host"], "h");
}

TEST(Preflight, NamesEveryFaultWithHostAndRemedy) {
  const auto expect = [](const std::function<void(Json&)>& change, const std::string& words) {
    const PreflightProblem problem = only_problem(change);
    EXPECT_NE(problem.what.find(words), std::string::npos) << problem.what << " / " << words;
    EXPECT_EQ(problem.host, "node1");
    EXPECT_FALSE(problem.fix.empty());
    EXPECT_EQ(problem.severity, Severity::Error);
  };
  expect([](Json& a) { a["assay"]["commit"] = "other"; }, "assay there is");
  expect([](Json& a) { a["paths"]["/data"] = false; }, "/data does not exist");
  expect([](Json& a) { a["programs"]["python3"] = nullptr; }, "python3 is no program in its PATH");
  expect([](Json& a) { a["data"][0]["exists"] = false; }, "data /data/set: does not exist");
  expect([](Json& a) { a["data"][0]["wrong"] = Json::parse(R"([{"file":"train.bin","problem":"missing"}])"); },
         "train.bin is missing");
  expect(
      [](Json& a) {
        a["data"][0]["wrong"] = Json::parse(R"([{"file":"train.bin","problem":"differs","found":"bbb"}])");
      },
      "is not the file it should be (SHA-256 bbb, expected aaaaaaaaaaaa)");
  expect([](Json& a) { a["disk"]["free_bytes"] = 10; }, "0.00 GB free, and 1.00 GB are needed");
  expect([](Json& a) { a["disk"]["free_bytes"] = nullptr; }, "is not known");
  expect([](Json& a) { a["disk"]["writable"] = false; }, "may not be written to");
  expect([](Json& a) { a["ports"]["29500"] = "in use"; }, "port 29500: in use");
  expect([](Json& a) { a["devices"]["count"] = 4; }, "4 A100 devices, and 8 are needed");
  expect(
      [](Json& a) {
        a["devices"] = {{"count", nullptr}, {"error", "nvidia-smi: exit code 9"}};
      },
      "nvidia-smi: exit code 9");
  expect([](Json& a) { a["versions"]["python3"] = nullptr; }, "python3 does not run");
  expect([](Json& a) { a["time_us"] = now_us() - 60'000'000; }, "behind ours");
  expect([](Json& a) { a["time_us"] = now_us() + 60'000'000; }, "ahead of ours");
  expect(
      [](Json& a) {
        a["locks"] = Json::parse(R"([{"hardware":"A100","index":3,"run":"r7","user":"eve","pid":"42"}])");
      },
      "device A100 3 of h is in use by run r7 of user eve (process 42)");
}

TEST(Preflight, WarnsOfMinorProblems) {
  EXPECT_EQ(only_problem([](Json& a) { a["time_us"] = now_us() - 3'000'000; }).severity, Severity::Warning);
  EXPECT_EQ(only_problem([](Json& a) { a["page_cache"] = false; }).severity, Severity::Warning);
  EXPECT_EQ(only_problem([](Json& a) { a["devices"] = {{"count", nullptr}}; }).severity, Severity::Warning);
  Json answer = good_answer();
  answer["page_cache"] = false;
  EXPECT_TRUE(ask(answer).ok());
}

TEST(Preflight, IgnoresOtherHardwareAndDevices) {
  Json answer = good_answer();
  answer["locks"] =
      Json::parse(R"([{"hardware":"cpu","index":3,"run":"r7"},{"hardware":"A100","index":0,"run":"r7"}])");
  EXPECT_TRUE(ask(answer, all_needs(), hosts(1, {3, 5})).problems.empty());
  EXPECT_EQ(ask(answer, all_needs(), hosts(1, {5, 0})).problems.size(), 1u);
  answer["devices"] = {{"count", nullptr}};  // also where their number is not known
  EXPECT_EQ(ask(answer, all_needs(), hosts(1, {5, 0})).problems.size(), 2u);
}

TEST(Preflight, IgnoresDevicesOfTheRunItself) {
  Json answer = good_answer();
  answer["locks"] = Json::parse(R"([{"hardware":"A100","index":0,"run":"r7"},{"hardware":"A100","index":1,"run":"r8"},
                                    {"hardware":"A100","index":2}])");
  PreflightNeeds needs = all_needs();
  EXPECT_EQ(ask(answer, needs, hosts(1, {0, 1, 2})).problems.size(), 3u);
  needs.own_run = "r7";
  const PreflightReport report = ask(answer, needs, hosts(1, {0, 1, 2}));
  ASSERT_EQ(report.problems.size(), 2u);
  EXPECT_NE(report.problems[0].what.find("in use by run r8"), std::string::npos) << report.problems[0].what;
}

TEST(Preflight, AsksEachHostForItsOwnDevices) {
  Json answer = good_answer();
  answer["devices"]["count"] = 4;
  std::vector<NodePlace> places = hosts(2, {2, 3});
  places[1].devices = {6, 7};
  const PreflightReport report = ask(answer, all_needs(), places);
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0].host, "node2");
  EXPECT_NE(report.problems[0].what.find("4 A100 devices, and number 7 is wanted"), std::string::npos);
}

TEST(Preflight, SeesAClockThatIsBehindOnASlowHost) {
  const PreflightReport report = run_preflight(hosts(1), all_needs(), [](const Host&, const auto& argv, double) {
    if (argv.at(2) != "{}") std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // copies, hashes
    Json answer = good_answer();
    answer["time_us"] = now_us() - 1'400'000;
    return says(to_line(answer));
  });
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_NE(report.problems[0].what.find("behind ours"), std::string::npos);
}

TEST(Preflight, GivesHashesTimeByTheirData) {
  std::vector<double> limits;
  Json answer = good_answer();
  answer["data"][0]["bytes"] = 100'000'000'000;
  const PreflightReport report = run_preflight(hosts(1), all_needs(), [&](const Host&, const auto& argv, double limit) {
    limits.push_back(limit);
    const bool with_hashes = argv.at(2).find("\"check_hashes\":true") != std::string::npos;
    EXPECT_EQ(with_hashes, limits.size() == 2) << argv.at(2);
    answer["time_us"] = now_us();
    return says(to_line(answer));
  });
  EXPECT_TRUE(report.problems.empty());
  ASSERT_EQ(limits.size(), 3u) << "all else, the hashes, the clock";
  EXPECT_GT(limits[1], limits[0] + 3600);
}

TEST(Preflight, ReadsTheNumberOfDevicesOfAVendor) {
  Json answer = good_answer();
  answer["devices"] = {{"count", nullptr}, {"output", "found 8 devices\n"}, {"error", nullptr}};
  EXPECT_TRUE(ask(answer).problems.empty());
  PreflightNeeds needs = all_needs();
  needs.count_devices = [](std::string_view) { return std::optional(2); };
  EXPECT_EQ(ask(answer, needs).problems.size(), 1u);
}

TEST(Preflight, ReportsAllProblemsOfAllHostsAtOnce) {
  const PreflightReport report =
      run_preflight(hosts(4), all_needs(), [](const Host& host, const auto&...) -> CapturedOutput {
        Json answer = good_answer();
        if (host.name == "node1") throw InfrastructureError("ssh: Connection refused");
        if (host.name == "node2") return says("", 255, "Permission denied (publickey).");
        if (host.name == "node3") return says("Welcome to node3!\n");
        answer["paths"]["/data"] = false;
        answer["disk"]["free_bytes"] = 10;
        answer["ports"] = Json::object();  // only the first host is asked for the port
        return says(to_line(answer));
      });
  ASSERT_EQ(report.problems.size(), 5u);
  EXPECT_FALSE(report.ok());
  EXPECT_NE(report.problems[0].text().find("node1: ssh: Connection refused"), std::string::npos);
  EXPECT_NE(report.problems[1].what.find("exit code 255: Permission denied"), std::string::npos);
  EXPECT_NE(report.problems[2].what.find("not one of assay"), std::string::npos);
  EXPECT_EQ(report.problems[3].host, "node4");
  EXPECT_EQ(report.problems[4].host, "node4");
}

TEST(Preflight, AsksHostsAtTheSameTime) {
  const Stopwatch watch;
  const PreflightReport report = run_preflight(hosts(30), {}, [](const auto&...) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return says(to_line(good_answer()));
  });
  EXPECT_LT(watch.seconds(), 6) << "one after the other it would be 12 s";
  EXPECT_EQ(report.hosts.size(), 30u);
}

TEST(Preflight, AnswersAreHostile) {
  for (const char* text :
       {"", "null", "[]", "{}", R"({"assay":1,"paths":[],"data":{},"disk":3,"ports":[],"devices":[],"locks":{},
      "versions":7,"time_us":"x"})",
        R"({"data":[[]],"locks":[1,[2]],"devices":{"count":"a"},"time_us":1e300})"}) {
    const PreflightReport report = run_preflight(hosts(1), all_needs(), [&](const auto&...) { return says(text); });
    EXPECT_FALSE(report.ok()) << text;
  }
}

TEST(Preflight, UnderstandsTheRealProbe) {
  const TempFolder folder;
  std::ofstream(folder.path() / "a.bin") << "content";
  std::ofstream(folder.path() / "b.bin") << "changed";
  PreflightNeeds needs;
  needs.paths = {folder.path().string(), "/no/such/path"};
  needs.data = {{.path = folder.path().string(),
                 .sha256 = {{"a.bin", sha256("content")}, {"b.bin", sha256("content")}, {"c.bin", sha256("x")}},
                 .check_hashes = true}};
  needs.disk_path = (folder.path() / "not/yet/there").string();
  needs.min_free_bytes = 1;
  needs.programs = {{"sh", ""}, {"no-such-program", ""}, {"tool", folder.path().string()}, {"/bin/sh", ""}};
  std::ofstream(folder.path() / "tool") << "#!/bin/sh\n";
  fs::permissions(folder.path() / "tool", fs::perms::owner_all);
  needs.versions = {{"shell", {"/bin/echo", "1.2"}}, {"nothing", {"/no/such/program"}}};
  const NodePlace here{.host = {.name = "here"}, .devices = {0}};
  const PreflightReport report = run_preflight({here}, needs, [](const Host&, const auto& argv, double) {
    EXPECT_EQ(argv.at(0), "assay");
    EXPECT_EQ(argv.at(1), "probe");
    return says(to_line(answer_probe(parse_json(argv.at(2), "question"))));
  });
  std::set<std::string> said;
  for (const PreflightProblem& problem : report.problems) said.insert(problem.what.substr(0, problem.what.find(" (")));
  const std::string data = "data " + folder.path().string() + ": ";
  EXPECT_EQ(said, (std::set<std::string>{"/no/such/path does not exist", "no-such-program is no program in its PATH",
                                         data + "b.bin is not the file it should be", data + "c.bin is missing",
                                         "nothing does not run"}));
  EXPECT_EQ(report.hosts.at("here")["versions"]["shell"], "1.2");
}
