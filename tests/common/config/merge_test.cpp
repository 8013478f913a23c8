#include "config/merge.h"

#include <gtest/gtest.h>

using namespace assay;

namespace {

Value value(const char* json, const char* layer = "case") { return Value::of(Json::parse(json), {layer, "f", 1}); }
std::string merged(const char* base, const char* layer) {
  Value out = value(base);
  merge_onto(out, value(layer));
  return to_line(out.to_json());
}

}  // namespace

TEST(Merge, MapsMergeEverythingElseReplaces) {
  EXPECT_EQ(merged(R"({"a":{"x":1,"y":2},"l":[1,2]})", R"({"a":{"y":3,"z":4},"l":[9]})"),
            R"({"a":{"x":1,"y":3,"z":4},"l":[9]})");
  EXPECT_EQ(merged(R"({"a":{"x":1}})", R"({"a":null})"), R"({"a":null})");
  EXPECT_EQ(merged(R"({"a":null})", R"({"a":{"x":1}})"), R"({"a":{"x":1}})");
}

TEST(Merge, ReplacesWithAStandaloneMap) {
  Value base = value(R"({"a":{"x":1,"y":2}})");
  Value layer = value(R"({"a":{"z":3}})");
  layer.child("a")->set_standalone(true);
  Value kept = base;
  merge_onto(base, layer);
  EXPECT_EQ(to_line(base.to_json()), R"({"a":{"z":3}})");
  EXPECT_FALSE(base.child("a")->standalone());
  merge_onto(kept, layer, true);
  EXPECT_TRUE(kept.child("a")->standalone());
}

TEST(Merge, ChangesAreLeavesThatDiffer) {
  const auto changes = changes_between(value(R"({"a":{"x":1,"gone":2,"same":3},"l":[1]})"),
                                       value(R"({"a":{"x":5,"same":3,"new":true},"l":[1,2]})"));
  std::vector<std::string> texts;
  for (const ConfigChange& change : changes) {
    texts.push_back(change.path + " " + change.before.text() + " " + change.after.text() +
                    (change.removed ? " removed" : ""));
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"a.x 1 5", "a.new null true", "l [1] [1, 2]", "a.gone 2 null removed"}));
  EXPECT_TRUE(changes_between(value(R"({"a":1,"b":{"c":2}})"), value(R"({"b":{"c":2},"a":1})")).empty());
}

TEST(Merge, ShowsLeavesOfASectionThatReplacesNull) {
  const auto changes = changes_between(value(R"({"clip":null})"), value(R"({"clip":{"norm":1.0}})"));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].path, "clip.norm");
  const auto back = changes_between(value(R"({"clip":{"norm":1.0}})"), value(R"({"clip":null})"));
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].path, "clip.norm");
  EXPECT_TRUE(back[0].removed);
}
