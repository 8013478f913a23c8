#include "record/log_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace assay;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

struct Complaint {
  std::string key;
  std::string text;
};

Complaint pattern_complaint(const Json& pattern) {
  try {
    LogPattern::parse(pattern);
  } catch (const PatternError& error) {
    return {error.key(), error.what()};
  }
  return {"", "(none)"};
}

}  // namespace

TEST(LogPattern, NamesMistakesAndTheKeyThatIsToBlame) {
  EXPECT_THAT(pattern_complaint({{"match", "("}, {"names", {"a"}}}).text, HasSubstr("is not an expression"));
  EXPECT_EQ(pattern_complaint({{"match", "("}, {"names", {"a"}}}).key, "match");
  EXPECT_THAT(pattern_complaint({{"match", "(a)(b)"}, {"names", {"a"}}}).text, HasSubstr("has 2 groups and 1 names"));
  EXPECT_EQ(pattern_complaint({{"match", "(a)(b)"}, {"names", {"a"}}}).key, "names");
  EXPECT_THAT(pattern_complaint({{"match", "a"}}).text, HasSubstr("has match: an expression"));
  EXPECT_THAT(pattern_complaint({{"match", "(a)"}, {"names", {"a"}}, {"kind", "x"}}).text,
              HasSubstr("kind is metrics or result"));
  EXPECT_THAT(pattern_complaint({{"match", "(a)"}, {"names", {"a"}}, {"nmaes", {"a"}}}).text,
              HasSubstr("has no 'nmaes' (did you mean 'names'?)"));
  EXPECT_EQ(pattern_complaint({{"match", "(a)"}, {"names", {"a"}}, {"nmaes", {"a"}}}).key, "nmaes");
  EXPECT_EQ(pattern_complaint({{"match", 5}, {"names", {"a"}}}).key, "match");
  EXPECT_EQ(pattern_complaint({{"match", "(a)"}, {"names", "a"}}).key, "names");
  EXPECT_EQ(pattern_complaint({{"match", "(a)"}, {"names", {1}}}).key, "names");
  EXPECT_THAT(pattern_complaint(5).text, HasSubstr("is not a map"));
  EXPECT_EQ(pattern_complaint({{"match", "(a)"}, {"names", {"a"}}}).text, "(none)");
}

TEST(LogPattern, FindsTheGroupsOfALine) {
  const LogPattern pattern = LogPattern::parse({{"match", "step ([0-9]+)( of .*)?"}, {"names", {"step", "rest"}}});
  EXPECT_THAT(pattern.groups("at step 12").value(), ElementsAre("12", ""));
  EXPECT_FALSE(pattern.groups("at step x"));
  EXPECT_FALSE(pattern.groups("step 1" + std::string(1 << 20, ' '))) << "too long for the engine";
}

TEST(LogPattern, KeepsItsJsonForm) {
  const Json metrics = {{"match", "(a)"}, {"names", {"a"}}};
  const Json result = {{"match", "(a)"}, {"names", {"a"}}, {"kind", "result"}};
  EXPECT_EQ(LogPattern::parse(metrics).to_json(), metrics);
  EXPECT_EQ(LogPattern::parse(result).to_json(), result);
  Json other = metrics;
  other["comment"] = "of an earlier version";
  EXPECT_EQ(LogPattern::parse(other, LogPattern::OtherKeys::Ignore).to_json(), metrics);
}
