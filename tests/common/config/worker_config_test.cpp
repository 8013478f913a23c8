#include "config/worker_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "temp_home.h"

using namespace assay;
using testing::AllOf;
using testing::HasSubstr;

namespace {

ResolvedCase resolved() {
  const TempHome home;
  home.write("cases/tiny/case.yaml",
             std::string(kTinyCase) + "data: {name: d, path: /data, sha256: {a.gz: " + std::string(64, 'A') + "}}\n");
  return resolve_case(home.request("tiny"));
}

}  // namespace

TEST(WorkerConfig, GoesRoundThroughAFile) {
  const ResolvedCase from = resolved();
  const TempFolder folder;
  write_file_atomic(folder.path() / "config.json", to_pretty(from.worker_json()));
  const WorkerConfig config = read_worker_config(folder.path() / "config.json");
  EXPECT_EQ(config.case_name, "tiny");
  EXPECT_EQ(config.key, "tiny");
  EXPECT_EQ(config.hash, from.hash());
  EXPECT_EQ(config.target.metric, "accuracy");
  EXPECT_EQ(config.target.value, 0.9);
  EXPECT_EQ(config.data.path, "/data");
  EXPECT_EQ(config.data.sha256.at("a.gz"), std::string(64, 'a'));
  EXPECT_EQ(config.config, from.config_json());
  EXPECT_EQ(config.section("Engine.save_load").get_int("save_epoch"), 1);
  EXPECT_THAT(error_of([&] { config.section("Model").get_bool("width"); }),
              testing::StartsWith("cases/tiny/case.yaml:12: Model.width must be true or false"));
}

TEST(WorkerConfig, NamesDamagedFiles) {
  const TempFolder folder;
  const fs::path path = folder.path() / "config.json";
  const Json good = resolved().worker_json();
  for (const char* key : {"case", "target", "config"}) {
    Json json = good;
    json.erase(key);
    write_file_atomic(path, to_line(json));
    EXPECT_THAT(error_of([&] { read_worker_config(path); }), AllOf(HasSubstr("config.json"), HasSubstr(key)));
  }
  Json extra = good;
  extra["confg"] = 1;
  write_file_atomic(path, to_line(extra));
  EXPECT_THAT(error_of([&] { read_worker_config(path); }), HasSubstr("confg"));
  for (const char* text : {"", "[]", "5", "null", "{\"case\": "}) {
    write_file_atomic(path, text);
    EXPECT_THROW(read_worker_config(path), Error) << text;
  }
}

TEST(WorkerConfig, SurvivesMutations) {
  std::mt19937 random(11);
  const std::string good = to_line(resolved().worker_json());
  for (int round = 0; round < 1000; ++round) {
    std::string text = good;
    for (int edit = 0; edit < 3; ++edit) text[random() % text.size()] = "{}[]:,\"0-ntf\\"[random() % 13];
    if (round % 4 == 0) text.resize(random() % text.size());
    try {
      const WorkerConfig config = worker_config_of(parse_json(text, "mutated"));
      (void)config.section("Engine").get_int("logging_freq", 1);
    } catch (const ConfigError&) {
    } catch (const DataError&) {
    }
  }
}

TEST(Target, KnowsWhenItIsReached) {
  const Target more{.metric = "accuracy", .value = 0.9, .goal = Goal::Maximize};
  EXPECT_TRUE(more.reached_by(0.9));
  EXPECT_FALSE(more.reached_by(0.8999));
  EXPECT_FALSE(more.reached_by(std::nan("")));
  const Target less{.metric = "loss", .value = 0.9, .goal = Goal::Minimize};
  EXPECT_TRUE(less.reached_by(0.5));
  EXPECT_FALSE(less.reached_by(1));
  EXPECT_FALSE(less.reached_by(std::nan("")));
}
