#include "monitor/devices.h"

#include <gtest/gtest.h>

#include <random>

#include "base/time.h"

using namespace assay;

TEST(Devices, ReadCsvWithTitlesAndUnits) {
  const Json found = parse_devices(
      "a warning\n"
      "index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], temperature.gpu\n"
      "0, Some GPU, 35 %, 1024 MiB, 40960 MiB, 61.50 W, 41\n"
      "1, Some GPU, [N/A], 0 MiB, 40960 MiB, [Not Supported], 40\n"
      "2, too few\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_DOUBLE_EQ(found[0]["utilization"].get<double>(), 0.35);
  EXPECT_DOUBLE_EQ(found[0]["memory_used_bytes"].get<double>(), 1073741824.0);
  EXPECT_DOUBLE_EQ(found[0]["power_w"].get<double>(), 61.5);
  EXPECT_DOUBLE_EQ(found[0]["temperature_c"].get<double>(), 41);
  EXPECT_EQ(found[0]["name"], "Some GPU");
  EXPECT_TRUE(found[1]["utilization"].is_null());
  EXPECT_TRUE(found[1]["power_w"].is_null()) << "not known is not 0";
  EXPECT_DOUBLE_EQ(parse_devices("a, utilization.gpu [%]\n0, 50\n")[0]["utilization"].get<double>(), 0.5);
}

TEST(Devices, ReadOneJsonLinePerDevice) {
  const Json found = parse_devices("{\"index\":0,\"power_w\":12.5,\"deep\":{\"x\":1}}\n{broken\n{\"index\":1}\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_DOUBLE_EQ(found[0]["power_w"].get<double>(), 12.5);
  EXPECT_FALSE(found[0].contains("deep"));
  EXPECT_TRUE(parse_devices("").is_null());
  EXPECT_TRUE(parse_devices("no devices were found\n").is_null());
}

TEST(Devices, SurviveGarbage) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int n = 0; n < 200; ++n) text += ",{}[]%\n\"a1\xff\0 "[random() % 14];
    parse_devices(text);
  }
}

TEST(Devices, AreUnknownWhenTheCommandFailsOrHangs) {
  EXPECT_EQ(ask_devices({"/bin/echo", R"({"power_w":3})"}, 10)[0]["power_w"], 3);
  EXPECT_TRUE(ask_devices({}, 1).is_null());
  EXPECT_TRUE(ask_devices({"/no/such/program"}, 1).is_null());
  EXPECT_TRUE(ask_devices({"/bin/sh", "-c", "echo '{\"a\":1}'; exit 1"}, 10).is_null());
  const Stopwatch watch;
  EXPECT_TRUE(ask_devices({"/bin/sleep", "60"}, 0.2).is_null());
  EXPECT_LT(watch.seconds(), 10);
}
