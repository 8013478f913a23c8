#include "execute/host_pool.h"

#include <gtest/gtest.h>

using namespace assay;

namespace {

HostPool two_hosts() { return HostPool({{.name = "a", .slots = 2}, {.name = "b", .slots = 4}}); }

Json places_of(const std::optional<std::vector<NodePlace>>& places) {
  return places ? to_json(*places) : Json(nullptr);
}

}  // namespace

TEST(HostPool, GivesOutDevicesOnceAndTakesThemBack) {
  HostPool pool = two_hosts();
  const auto first = pool.take(1, 2);
  EXPECT_EQ(places_of(first), Json::parse(R"([{"host": "a", "devices": [0, 1]}])"));
  EXPECT_EQ(places_of(pool.take(1, 2)), Json::parse(R"([{"host": "b", "devices": [0, 1]}])"));
  EXPECT_EQ(places_of(pool.take(2, 1)), nullptr);  // a is full
  EXPECT_EQ(places_of(pool.take(1, 2)), Json::parse(R"([{"host": "b", "devices": [2, 3]}])"));
  EXPECT_EQ(places_of(pool.take(1, 1)), nullptr);
  pool.give_back(*first);
  EXPECT_EQ(places_of(pool.take(1, 1)), Json::parse(R"([{"host": "a", "devices": [0]}])"));
}

TEST(HostPool, TakesDevicesOfAnEarlierControllerAgain) {
  HostPool pool = two_hosts();
  const Json before = Json::parse(R"([{"host": "b", "devices": [1, 2]}])");
  EXPECT_EQ(places_of(pool.take_again(before)), before);
  EXPECT_EQ(places_of(pool.take_again(before)), nullptr);
  EXPECT_EQ(places_of(pool.take_again(Json::parse(R"([{"host": "gone", "devices": [0]}])"))), nullptr);
  EXPECT_EQ(places_of(pool.take_again(Json::parse(R"([{"host": "a", "devices": [7]}])"))), nullptr);
}

TEST(HostPool, LetsTheLauncherFindMissingHosts) {
  HostPool pool;
  EXPECT_EQ(pool.take(3, 8)->size(), 3u);
  EXPECT_EQ(pool.take(3, 8)->size(), 3u);
}

TEST(HostPool, AcceptsNamedDevices) {
  HostPool pool({{.name = "a", .slots = 2, .devices = {5, 3}}});
  EXPECT_EQ(places_of(pool.take(1, 2)), Json::parse(R"([{"host": "a", "devices": [3, 5]}])"));
  EXPECT_EQ(places_of(pool.take(1, 1)), nullptr);
}
