#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "config/yaml.h"
#include "temp_home.h"

using namespace assay;
using testing::AllOf;
using testing::HasSubstr;

TEST(LoadYaml, MergesBaseFilesAndKeepsPlaces) {
  const TempHome home;
  home.write("common/base.yaml", "Engine: {max_steps: 10, save_load: {save_steps: 5}}\nlist: [1, 2, 3]\nx: 1\n");
  home.write("common/mid.yaml", "_base_: ./base.yaml\nEngine:\n  max_steps: 20\n");
  const auto top = home.write("a/top.yaml", "_base_: ../common/mid.yaml\nlist: [9]\nEngine:\n  logging_freq: 1\n");
  const Value value = load_yaml(top, "case");
  EXPECT_EQ(to_line(value.to_json()),
            R"({"Engine":{"max_steps":20,"save_load":{"save_steps":5},"logging_freq":1},"list":[9],"x":1})");
  EXPECT_THAT(value.find("Engine.max_steps")->origin().text(), HasSubstr("common/mid.yaml:3"));
  EXPECT_THAT(value.find("x")->origin().text(), HasSubstr("common/base.yaml:3"));
  EXPECT_THAT(value.find("list")->origin().text(), HasSubstr("a/top.yaml:2"));
}

TEST(LoadYaml, ReplacesASubtreeWithInheritedFalse) {
  const TempHome home;
  home.write("base.yaml", "A: {x: 1, y: {z: 2, w: 3}}\n");
  const auto top = home.write("top.yaml", "_base_: base.yaml\nA:\n  y:\n    _inherited_: False\n    v: 4\n");
  EXPECT_EQ(to_line(load_yaml(top, "case").to_json()), R"({"A":{"x":1,"y":{"v":4}}})");
  EXPECT_TRUE(load_yaml(top, "case").find("A.y")->standalone());
  const auto keep = home.write("keep.yaml", "_base_: base.yaml\nA: {y: {_inherited_: True, v: 4}}\n");
  EXPECT_EQ(to_line(load_yaml(keep, "case").to_json()), R"({"A":{"x":1,"y":{"z":2,"w":3,"v":4}}})");
  const auto bad = home.write("bad.yaml", "A:\n  _inherited_: maybe\n");
  EXPECT_THAT(error_of([&] { load_yaml(bad, "case"); }), AllOf(HasSubstr("bad.yaml:2"), HasSubstr("_inherited_")));
}

TEST(LoadYaml, NamesTheChainOfACircle) {
  const TempHome home;
  const auto a = home.write("a.yaml", "_base_: b.yaml\n");
  home.write("b.yaml", "_base_: sub/../c.yaml\n");
  home.write("c.yaml", "_base_: a.yaml\n");
  EXPECT_THAT(error_of([&] { load_yaml(a, "case"); }),
              AllOf(HasSubstr("circle"), HasSubstr("a.yaml -> "), HasSubstr("b.yaml -> "), HasSubstr("c.yaml -> ")));
  const auto self = home.write("self.yaml", "_base_: self.yaml\n");
  EXPECT_THAT(error_of([&] { load_yaml(self, "case"); }), HasSubstr("circle"));
}

TEST(LoadYaml, RejectsLongChains) {
  const TempHome home;
  for (int i = 0; i < 40; ++i) {
    home.write("f" + std::to_string(i) + ".yaml", "_base_: f" + std::to_string(i + 1) + ".yaml\n");
  }
  home.write("f40.yaml", "x: 1\n");
  EXPECT_THAT(error_of([&] { load_yaml(home.path() / "f0.yaml", "case"); }), HasSubstr("base files"));
}

TEST(LoadYaml, NamesMissingAndWrongFiles) {
  const TempHome home;
  const auto lost = home.write("lost.yaml", "x: 1\n_base_: none.yaml\n");
  EXPECT_THAT(error_of([&] { load_yaml(lost, "case"); }), AllOf(HasSubstr("lost.yaml:2"), HasSubstr("none.yaml")));
  EXPECT_THAT(error_of([&] { load_yaml(home.path() / "absent.yaml", "case"); }), HasSubstr("absent.yaml"));
  EXPECT_THAT(error_of([&] { load_yaml(home.path(), "case"); }), HasSubstr("not a regular file"));
  const auto number = home.write("number.yaml", "_base_: 5\n");
  EXPECT_THAT(error_of([&] { load_yaml(number, "case"); }), HasSubstr("number.yaml:1"));
  for (const char* text : {"- a\n- b\n", "word\n", "5\n"}) {
    const auto file = home.write("no_map.yaml", text);
    EXPECT_THAT(error_of([&] { load_yaml(file, "case"); }),
                AllOf(HasSubstr("no_map.yaml:1"), HasSubstr("map of sections")));
  }
  // A pipe would block for ever.
  const fs::path pipe = home.path() / "pipe.yaml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { load_yaml(pipe, "case"); }), HasSubstr("not a regular file"));
}
