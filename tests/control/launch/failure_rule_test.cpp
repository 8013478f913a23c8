#include "launch/failure_rule.h"

#include <gtest/gtest.h>

#include <thread>

using namespace assay;

TEST(FailureRule, DecidesNothingWithoutAFailure) {
  const FailureRule rule;
  EXPECT_FALSE(rule.decider());
  EXPECT_FALSE(rule.is_decided());
  EXPECT_FALSE(rule.is_consequence());
}

TEST(FailureRule, TakesTheFirstFailureAsTheCause) {
  FailureRule rule;
  rule.note(2, false);
  rule.note(0, false);
  rule.note(1, true);
  EXPECT_EQ(rule.decider(), 2u);
  EXPECT_TRUE(rule.is_decided());
}

TEST(FailureRule, PrefersACauseToALostConnection) {
  FailureRule rule;
  rule.note(0, true);
  rule.note(1, true);
  EXPECT_EQ(rule.decider(), 0u);
  EXPECT_TRUE(rule.is_consequence());
  EXPECT_FALSE(rule.is_decided()) << "another one is looked for";
  rule.note(3, false);
  EXPECT_EQ(rule.decider(), 3u);
  EXPECT_TRUE(rule.is_decided());
  EXPECT_FALSE(rule.is_consequence());
}

TEST(FailureRule, StopsLookingForACauseAfterTheGraceTime) {
  FailureRule rule(0.02);
  rule.note(1, true);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  rule.note(1, true);
  EXPECT_TRUE(rule.is_decided());
  EXPECT_EQ(rule.decider(), 1u);
  EXPECT_TRUE(rule.is_consequence());
}

TEST(FailureRule, KnowsTheExitCodeOfALostConnection) {
  EXPECT_TRUE(lost_touch({.code = 13, .signal = {}}));
  EXPECT_FALSE(lost_touch({.code = 1, .signal = {}}));
  EXPECT_FALSE(lost_touch({.code = {}, .signal = 9}));
}
